package interference

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The tables of iptables-legacy, which are a kernel's own and no part of nftables: they are read and written as a whole, by options of a raw socket
// (linux/netfilter_ipv4/ip_tables.h). A user's chain is a header, its rules and a return, before the entry that ends the table.
const (
	soReplace    = 64 // IPT_SO_SET_REPLACE
	soInfo       = 64 // IPT_SO_GET_INFO
	soEntries    = 65 // IPT_SO_GET_ENTRIES
	tableName    = 32 // XT_TABLE_MAXNAMELEN
	hooks        = 5
	entrySize    = 112 // struct ipt_entry
	atTarget     = 88  // its target_offset and next_offset, both uint16
	atNext       = 90
	atCounters   = 96
	targetHead   = 32              // struct xt_entry_target: size, name, revision
	standardSize = targetHead + 8  // a verdict, and padding
	errorSize    = targetHead + 32 // a name, XT_FUNCTION_MAXNAMELEN is 30, and padding
	verdictAt    = targetHead
	returned     = -5                                  // XT_RETURN
	replaceHead  = tableName + 3*4 + 2*4*hooks + 4 + 8 // struct ipt_replace: its last parts are num_counters and counters
)

// legacyInfo is struct ipt_getinfo.
type legacyInfo struct {
	Name              [tableName]byte
	Valid             uint32
	Hooks, Underflows [hooks]uint32
	Entries, Size     uint32
}

// readLegacy is a table. No module is loaded for it: where the kernel has no iptables-legacy nothing is changed.
func readLegacy(fd int, table string) (info *legacyInfo, entries []byte, err error) {
	info = &legacyInfo{}
	copy(info.Name[:], table)
	size := uint32(unsafe.Sizeof(*info))
	if err := getOption(fd, soInfo, unsafe.Pointer(info), &size); err != nil {
		return nil, nil, &errLacking{fmt.Sprintf("the kernel has no table %s of iptables-legacy: %v", table, err)}
	}
	const head = tableName + 8 // struct ipt_get_entries: name, size, alignment
	b := make([]byte, head+int(info.Size))
	copy(b, table)
	binary.NativeEndian.PutUint32(b[tableName:], info.Size)
	size = uint32(len(b))
	if err := getOption(fd, soEntries, unsafe.Pointer(&b[0]), &size); err != nil {
		return nil, nil, fmt.Errorf("read table %s of iptables-legacy: %w", table, err)
	}
	return info, b[head:], nil
}

func getOption(fd, option int, value unsafe.Pointer, size *uint32) error {
	_, _, no := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_IP, uintptr(option), uintptr(value), uintptr(unsafe.Pointer(size)), 0)
	if no != 0 {
		return no
	}
	return nil
}

// rawSocket is what the tables are read and written by.
func rawSocket(do func(fd int) error) error {
	if _, err := os.Stat("/proc/net/ip_tables_names"); err != nil {
		return &errLacking{"the kernel has no iptables-legacy (ip_tables is not loaded)"}
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return fmt.Errorf("open a raw socket: %w", err)
	}
	defer unix.Close(fd)
	return do(fd)
}

// legacyEntry is a rule: from is matched where it is given.
func legacyEntry(from bool, target []byte) []byte {
	b := make([]byte, entrySize, entrySize+len(target))
	if from { // struct ipt_ip: source, destination, their masks
		copy(b, thirdPartyNet.IP)
		copy(b[8:], thirdPartyNet.Mask)
	}
	binary.NativeEndian.PutUint16(b[atTarget:], entrySize)
	binary.NativeEndian.PutUint16(b[atNext:], uint16(entrySize+len(target)))
	return append(b, target...)
}

func standardTarget(verdict int32) []byte {
	b := make([]byte, standardSize)
	binary.NativeEndian.PutUint16(b, standardSize)
	binary.NativeEndian.PutUint32(b[verdictAt:], uint32(verdict))
	return b
}

func errorTarget(name string) []byte {
	b := make([]byte, errorSize)
	binary.NativeEndian.PutUint16(b, errorSize)
	copy(b[2:], "ERROR")
	copy(b[targetHead:], name)
	return b
}

// legacyChain is the third party's chain, in which a packet of its network returns.
func legacyChain() []byte {
	return slices.Concat(legacyEntry(false, errorTarget(thirdPartyChain)), legacyEntry(true, standardTarget(returned)), legacyEntry(false, standardTarget(returned)))
}

const legacyChainEntries = 3

// addLegacyChain is what iptables-legacy -N THIRD-PARTY and a rule make.
func addLegacyChain(table string) error {
	return rawSocket(func(fd int) error {
		info, entries, err := readLegacy(fd, table)
		if err != nil {
			return err
		}
		if legacyAt(entries) >= 0 {
			return nil
		}
		end := lastEntry(entries)
		chain := legacyChain()
		all := slices.Concat(entries[:end], chain, entries[end:])
		counters := make([]byte, 16*info.Entries) // of the old table; they are dropped
		b := make([]byte, replaceHead, replaceHead+len(all))
		copy(b, table)
		n := binary.NativeEndian
		n.PutUint32(b[tableName:], info.Valid)
		n.PutUint32(b[tableName+4:], info.Entries+legacyChainEntries)
		n.PutUint32(b[tableName+8:], uint32(len(all)))
		for i := range hooks {
			n.PutUint32(b[tableName+12+4*i:], info.Hooks[i])
			n.PutUint32(b[tableName+12+4*(hooks+i):], info.Underflows[i])
		}
		n.PutUint32(b[tableName+12+8*hooks:], info.Entries)
		n.PutUint64(b[replaceHead-8:], uint64(uintptr(unsafe.Pointer(&counters[0]))))
		b = append(b, all...)
		_, _, no := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.IPPROTO_IP, soReplace, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0)
		runtime.KeepAlive(counters)
		if no != 0 {
			return fmt.Errorf("write table %s of iptables-legacy: %w", table, no)
		}
		return nil
	})
}

// lookLegacyChain is that chain as it is now.
func lookLegacyChain(table string) (text string, err error) {
	err = rawSocket(func(fd int) error {
		_, entries, err := readLegacy(fd, table)
		if err != nil {
			return err
		}
		at := legacyAt(entries)
		if at < 0 {
			return nil
		}
		var rules []string
		for at += next(entries[at:]); at < len(entries) && !strings.HasPrefix(targetOf(entries[at:]), "ERROR"); at += next(entries[at:]) {
			e := entries[at:]
			rules = append(rules, fmt.Sprintf("%d.%d.%d.%d/%x %s", e[0], e[1], e[2], e[3], e[8:12], targetOf(e)))
		}
		text = strings.Join(rules, "; ")
		return nil
	})
	return text, err
}

// next is an entry's size, and never 0.
func next(entry []byte) int {
	return max(entrySize, int(binary.NativeEndian.Uint16(entry[atNext:])))
}

// targetOf is an entry's target: its name and, of the kernel's own, the verdict or the chain's name.
func targetOf(entry []byte) string {
	t := entry[binary.NativeEndian.Uint16(entry[atTarget:]):]
	name := text(t[2:targetHead])
	switch name {
	case "":
		return fmt.Sprint(int32(binary.NativeEndian.Uint32(t[verdictAt:])))
	case "ERROR":
		return name + " " + text(t[targetHead:])
	}
	return name
}

func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// legacyAt is where the third party's chain begins; -1: nowhere.
func legacyAt(entries []byte) int {
	for at := 0; at < len(entries); at += next(entries[at:]) {
		if targetOf(entries[at:]) == "ERROR "+thirdPartyChain {
			return at
		}
	}
	return -1
}

// lastEntry is where the entry begins that ends a table.
func lastEntry(entries []byte) (last int) {
	for at := 0; at < len(entries); at += next(entries[at:]) {
		last = at
	}
	return last
}
