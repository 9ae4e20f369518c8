package vm

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Types returns the path of a file with the kernel's BTF. The first call writes
// the file next to the kernel's image.
func (k Kernel) Types() (string, error) {
	return k.unpacked("btf", func(vmlinux []byte) ([]byte, error) {
		f, err := elf.NewFile(bytes.NewReader(vmlinux))
		if err != nil {
			return nil, err
		}
		section := f.Section(".BTF")
		if section == nil {
			return nil, fmt.Errorf("there is no section .BTF")
		}
		return section.Data()
	})
}

// vmlinux returns the path of the kernel's ELF file, which QEMU boots with the help of
// a note in it (CONFIG_PVH). The first call writes the file next to the image.
func (k Kernel) vmlinux() (string, error) {
	return k.unpacked("vmlinux", func(vmlinux []byte) ([]byte, error) { return vmlinux, nil })
}

// unpacked returns the path of a file next to the image that has a part of the kernel.
// The first call writes it.
func (k Kernel) unpacked(name string, part func(vmlinux []byte) ([]byte, error)) (string, error) {
	name = filepath.Join(k.Dir, name)
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	vmlinux, err := readVmlinux(k.image())
	if err == nil {
		vmlinux, err = part(vmlinux)
	}
	if err != nil {
		return "", fmt.Errorf("unpack %s: %w", k.image(), err)
	}
	temp, err := os.CreateTemp(k.Dir, ".unpack-")
	if err != nil {
		return "", err
	}
	defer os.Remove(temp.Name())
	if _, err := temp.Write(vmlinux); err != nil {
		return "", err
	}
	if err := temp.Chmod(0o644); err != nil {
		return "", err
	}
	if err := temp.Close(); err != nil {
		return "", err
	}
	return name, os.Rename(temp.Name(), name)
}

// readVmlinux returns the kernel in a bootable image.
func readVmlinux(file string) ([]byte, error) {
	image, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	payload, err := payload(image)
	if err != nil {
		return nil, err
	}
	vmlinux, err := decompress(payload)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return vmlinux, nil
}

// payload returns the compressed kernel in an image, without the size that
// follows it (Documentation/arch/x86/boot.rst).
func payload(image []byte) ([]byte, error) {
	const sectors, offset, length = 0x1f1, 0x248, 0x24c
	if len(image) < length+4 || string(image[0x202:0x206]) != "HdrS" {
		return nil, fmt.Errorf("it is not a bootable image")
	}
	from := (uint64(image[sectors])+1)*512 + uint64(binary.LittleEndian.Uint32(image[offset:]))
	size := uint64(binary.LittleEndian.Uint32(image[length:]))
	if size < 8 || from+size > uint64(len(image)) {
		return nil, fmt.Errorf("the compressed kernel lies outside of the image")
	}
	return image[from:][:size-4], nil
}

// decompress supports the formats of Debian's kernels: lz4 up to 6.1, then
// zstd.
func decompress(data []byte) ([]byte, error) {
	in := bytes.NewReader(data)
	switch {
	case bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in, zstd.WithDecoderMaxWindow(1<<31))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return io.ReadAll(z)
	case bytes.HasPrefix(data, []byte{0x02, 0x21, 0x4c, 0x18}):
		return io.ReadAll(lz4.NewReader(in))
	case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(z)
	}
	return nil, fmt.Errorf("no compression begins with %x", data[:4])
}
