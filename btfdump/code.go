package btfdump

// The code is a flat slice of ops. The members of a structure are consecutive in it.
// The members of a structure type that occurs more than once are in it only once,
// since their offsets are relative to the enclosing structure, and their names and
// casts are the same everywhere. Printing a value needs no BTF, and nothing in an
// op is specific to text except the form of its label.

// kind is the way in which a value is read and printed.
type kind uint8

const (
	kindInt       kind = iota // decimal, 1, 2, 4 or 8 bytes
	kindWide                  // hex, any other number of bytes
	kindChar                  // element of a char array: 'c' or a number
	kindEnum                  // enumerator or decimal
	kindPointer               // 0x hex
	kindFloat                 // C's %f
	kindStructure             // ops[first:first+n] are its members
	kindSection               // ops[first:first+n] are its variables
	kindArray                 // n elements, each printed by ops[first]
	kindChars                 // the same, or a string
	kindBytes                 // n bytes in hex
	kindBools                 // n bytes as numbers
	kindNothing               // only the label: a function in a section
)

// compound reports whether a value of this kind may be shown partly.
func (k kind) compound() bool { return k >= kindStructure && k != kindNothing }

// op prints one member, element or whole value.
type op struct {
	label string // ".name = (type)"; name and type are optional
	enum  *enumeration

	off  uint32 // bytes from the start of the enclosing structure
	size uint32 // bytes; 0 for a flexible array

	first uint32
	n     uint32

	name   uint32 // label[:name] is ".name = ", or the declaration of a variable or section
	kind   kind
	width  uint8 // of a bitfield in bits, else 0
	shift  uint8 // bits from off to the start of a bitfield, 0 to 7
	signed bool
	truth  bool // a bool, which JSON prints as true or false
	tail   bool // ends in a flexible array, which reaches to the end of the data
}
