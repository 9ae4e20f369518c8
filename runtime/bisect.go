package runtime

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// maxTries bounds the search for bad places: to find one of a thousand takes
// ten. A try that fails takes a millisecond or, with names, that for each
// hundred thousand symbols; one that does not takes an RCU grace period, too.
const maxTries = 200

var errTooManyBad = errors.New("too many functions of this link cannot be hooked, and the search for them was given up: name fewer")

// badPlace is a place that cannot be attached to.
type badPlace struct {
	compiler.Place
	err error
}

// badPlaces finds out which places make a link of several fail, which the
// kernel does not tell. err is the error with all of them.
func badPlaces(places []compiler.Place, err error, try func([]compiler.Place) error) []badPlace {
	b := bisection{try: try}
	b.find(places, err)
	return b.bad
}

func allBad(places []compiler.Place, err error) []badPlace {
	var bad []badPlace
	for _, p := range places {
		bad = append(bad, badPlace{p, err})
	}
	return bad
}

type bisection struct {
	try   func([]compiler.Place) error
	tries int
	bad   []badPlace
}

// find adds the bad ones of places, which together fail with err.
func (b *bisection) find(places []compiler.Place, err error) {
	switch {
	case len(places) == 1 || !ofPlace(err):
		b.bad = append(b.bad, allBad(places, err)...)
		return
	case b.tries >= maxTries:
		b.bad = append(b.bad, allBad(places, errTooManyBad)...)
		return
	}
	left, right := places[:len(places)/2], places[len(places)/2:]
	b.tries++
	leftErr := b.try(left)
	if leftErr == nil {
		b.find(right, err)
		return
	}
	b.find(left, leftErr)
	b.tries++
	if err := b.try(right); err != nil {
		b.find(right, err)
	}
}

// ofPlace says whether an error is about a function to attach to, and not
// about the program, the user or the machine.
func ofPlace(err error) bool {
	for _, e := range []error{os.ErrNotExist, unix.EINVAL, unix.EBUSY, unix.EADDRNOTAVAIL, unix.ERANGE, unix.EILSEQ} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
