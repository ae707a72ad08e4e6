package image

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// pemFile is a file with the same n root certificates in each call of one test run.
func pemFile(t *testing.T, n int) string {
	t.Helper()
	var b bytes.Buffer
	for i := range n {
		writeCertificate(t, &b, i)
	}
	return pemText(t, b.String())
}

func pemText(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "roots.pem")
	must.Do(t, os.WriteFile(name, []byte(text), 0o644))
	return name
}

// writeCertificate makes a certificate that depends on i alone (Ed25519 signatures are deterministic).
func writeCertificate(t *testing.T, b *bytes.Buffer, i int) {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = byte(i)
	key := ed25519.NewKeyFromSeed(seed)
	c := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), NotAfter: time.Unix(1<<32, 0), IsCA: true, BasicConstraintsValid: true}
	der := must.Get(x509.CreateCertificate(rand.Reader, c, c, key.Public(), key))(t)
	must.Do(t, pem.Encode(b, &pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestRootsKeepOrderWithoutRepeats: comments, repeats, keys and what does not parse are left out; the order stays.
func TestRootsKeepOrderWithoutRepeats(t *testing.T) {
	var one, two bytes.Buffer
	writeCertificate(t, &one, 1)
	writeCertificate(t, &two, 2)
	key := "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
	broken := "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	have, err := readRoots(pemText(t, "# Two\n"+two.String()+key+broken+"\n# One\n"+one.String()+two.String()))
	if err != nil || string(have) != two.String()+one.String() {
		t.Errorf("%v:\n%s", err, have)
	}
	if _, err := readRoots(pemText(t, strings.Repeat("#", maxRoots+1))); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a huge file: %v", err)
	}
}

// TestMachineRoots: this machine's are found, or it is said where they were looked for.
func TestMachineRoots(t *testing.T) {
	have, err := readRoots("")
	if err != nil && !strings.Contains(err.Error(), rootsPath) {
		t.Error(err)
	}
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(have) {
		t.Error("they cannot be read again")
	}
}
