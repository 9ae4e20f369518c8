package guest

// pause gives QEMU's other CPUs a turn, after some instructions of its own, or the clock
// would stand still.
func pause()
