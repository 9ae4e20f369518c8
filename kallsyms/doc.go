// Package kallsyms reads the kernel's symbol table. It finds the symbols with a
// given name and the symbol at a given address.
//
//	table, err := kallsyms.Read(file, nil) // file: /proc/kallsyms, opened
//	for _, symbol := range table.Lookup("m_start") {
//		fmt.Printf("%#x %s\n", symbol.Addr, symbol.Module)
//	}
//	symbol, offset, ok := table.At(0xffffffff81000042)
//
// Names are not unique: several symbols of the kernel and its modules may share
// one. Addresses are not unique either: one address may have several names.
// Without CAP_SYSLOG, or with kernel.kptr_restrict set to 2, the kernel shows
// every address as zero; see [Table.NeedAddresses].
package kallsyms
