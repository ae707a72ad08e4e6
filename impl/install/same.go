package install

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// same says whether a program is there already: a file with these contents that everybody may start. What cannot be read is another.
func same(from, there string) bool {
	st, err := os.Lstat(there)
	if err != nil || !st.Mode().IsRegular() || st.Mode().Perm() != mode {
		return false
	}
	a, err := os.Open(from)
	if err != nil {
		return false
	}
	defer a.Close()
	if of, err := a.Stat(); err != nil || of.Size() != st.Size() {
		return false
	}
	b, err := os.Open(there)
	if err != nil {
		return false
	}
	defer b.Close()
	return equal(a, b)
}

// block is how much is compared at once, in bytes.
const block = 256 << 10

func equal(a, b io.Reader) bool {
	x, y := make([]byte, block), make([]byte, block)
	for {
		n, errA := io.ReadFull(a, x)
		m, errB := io.ReadFull(b, y)
		if !bytes.Equal(x[:n], y[:m]) {
			return false
		}
		if ended(errA) || ended(errB) {
			return ended(errA) && ended(errB)
		}
		if errA != nil || errB != nil {
			return false
		}
	}
}

// ended says whether there is nothing more to read.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
