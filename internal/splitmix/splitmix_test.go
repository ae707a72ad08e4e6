package splitmix_test

import (
	"testing"

	"github.com/enilab/enilab/internal/splitmix"
)

// TestNumbers: the numbers are those of the authors' implementation (https://prng.di.unimi.it/splitmix64.c) from state 1234567.
func TestNumbers(t *testing.T) {
	state := uint64(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := splitmix.Next(&state); got != want {
			t.Errorf("number %d: %d, expected %d", i, got, want)
		}
	}
}

func TestUnmix(t *testing.T) {
	state := uint64(0)
	for range 1000 {
		z := splitmix.Next(&state)
		if got := splitmix.Unmix(splitmix.Mix(z)); got != z {
			t.Fatalf("%#x mixed and unmixed is %#x", z, got)
		}
	}
}
