package btfdump

// A plan is a flat slice of ops. The members of a record are neighbours in it,
// and a record type that occurs more than once has its members there only once:
// offsets count from the start of the enclosing record, names and casts do not
// depend on the place. Traversal needs no BTF any more, and nothing in an op is
// particular to text but the form of its label.

// kind says how a value is read and printed.
type kind uint8

const (
	kindInt     kind = iota // decimal, 1, 2, 4 or 8 bytes
	kindWide                // hex, any other number of bytes
	kindChar                // element of a char array: 'c' or a number
	kindEnum                // enumerator or decimal
	kindPointer             // 0x hex
	kindFuncPtr             // 0x hex and the symbol
	kindFloat               // C's %f
	kindRecord              // ops[first:first+n] are its members
	kindSection             // ops[first:first+n] are its variables
	kindArray               // n elements, each printed by ops[first]
	kindChars               // the same, or a string
	kindBytes               // n bytes in hex
	kindBools               // n bytes as numbers
	kindNothing             // only the label: a function in a section
)

// compound reports whether a value of this kind may be shown in part.
func (k kind) compound() bool { return k >= kindRecord && k != kindNothing }

// op prints one member, element or whole value.
type op struct {
	label string // ".name = (type)", without what the value lacks
	enum  *enumeration

	off  uint32 // bytes from the start of the enclosing record
	size uint32 // bytes; 0 for a flexible array

	first uint32
	n     uint32

	name   uint32 // label[:name] is ".name = ", or the declaration of a variable or section
	kind   kind
	width  uint8 // of a bitfield in bits, else 0
	shift  uint8 // bits from off to the start of a bitfield, 0 to 7
	signed bool
	truth  bool // a bool: JSON tells it from a number
	tail   bool // reaches to the end of the data: holds a flexible array at its end
}
