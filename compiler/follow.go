package compiler

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// Follow describes what a probe does with the objects that are followed.
type Follow struct {
	Role   Role
	Object *Value // the pointer to the object; of [Frees], to what is freed
	// Size is the number of bytes that are freed, or nil if only an object at the
	// pointer itself is freed. It is only set for [Frees].
	Size *Value
	// Limit is the number of objects to follow in all, or 0 for no limit. It is only
	// set for [Starts].
	Limit int
	// Result is the pointer that the function returns. It is only set for [Joins].
	Result *Value
	Type   btf.Type // the type of the object
}

// Role is what a probe's calls mean to an object that is followed.
type Role uint8

// The roles.
const (
	Starts Role = iota + 1 // an object is followed from a matching call on
	Meets                  // a function gets an object
	Ends                   // a function gets an object and ends it
	Joins                  // a function gets an object, and returns one that is made from it
	Frees                  // memory is freed, and an object in it ends
)

// Ending reports whether an object is no longer followed once the probe has seen it.
func (f *Follow) Ending() bool { return f.Role == Ends || f.Role == Frees }

// FreedBy is the name of the value of [Frees] that tells where memory was freed.
const FreedBy = "freed by"

// ObjectsMap is the name of an array of one element with the objects that are
// followed. User space reads it through mapped memory.
const ObjectsMap = "objects"

// MostObjects is the number of objects that are followed at a time. Their addresses
// are compared one by one: an array of eight costs less than any hash.
const MostObjects = 8

// Offsets in the element of [ObjectsMap]. A place without an object has the address
// 0.
const (
	ObjectAddrs   = 0
	ObjectNumbers = ObjectAddrs + 8*MostObjects   // of the objects, counted from 1 in the order of their beginning
	ObjectLast    = ObjectNumbers + 8*MostObjects // u64: the number of the latest object
	ObjectStarted = ObjectLast + 8                // u64: the number of objects that the spec has chosen
	ObjectLock    = ObjectStarted + 8             // u64: 1 while a program adds an object
	ObjectBuckets = ObjectLock + 8                // u32 each: how many objects are in a bucket
	ObjectsSize   = ObjectBuckets + BucketMask + 4
)

// An address belongs to the bucket at the offset (address >> BucketShift) & BucketMask: its
// lowest six bits, which objects have in common, do not matter. Most addresses belong to a
// bucket without an object, and need not be compared with those of the objects.
const (
	BucketShift = 4
	BucketMask  = 4095 << 2
)

// ObjectsSpec returns the spec of [ObjectsMap].
func ObjectsSpec() *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: ObjectsMap, Type: ebpf.Array, KeySize: 4, ValueSize: ObjectsSize, MaxEntries: 1, Flags: mmapable}
}

// Offsets in the part of a record that names its object, see [Layout].Object.
const (
	ObjectAddr   = 0
	ObjectNumber = 8
	ObjectPart   = 16 // size of the part
)
