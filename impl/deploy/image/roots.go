package image

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// rootsPath is where Go's crypto/x509 looks first on Linux.
const rootsPath = "/etc/ssl/certs/ca-certificates.crt"

// bundles are where distributions keep their root certificates (crypto/x509's own list, root_linux.go), and macOS.
var bundles = []string{rootsPath, "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"}

// maxRoots bounds what is read; Mozilla's roots are 220 KB.
const maxRoots = 8 << 20

// readRoots reads root certificates as a PEM file without anything else, each once, in its order: comments differ between distributions.
func readRoots(file string) ([]byte, error) {
	candidates := bundles
	if file != "" {
		candidates = []string{file}
	}
	for _, name := range candidates {
		out, err := readBundle(name)
		if file == "" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("root certificates: %w", err)
		}
		return out, nil
	}
	return nil, fmt.Errorf("this machine has no root certificates, without which the daemon cannot call EC2 (looked at %s): install ca-certificates, or name a PEM file",
		strings.Join(candidates, ", "))
}

func readBundle(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rest, err := io.ReadAll(io.LimitReader(f, maxRoots+1))
	if err != nil {
		return nil, err
	}
	if len(rest) > maxRoots {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxRoots)
	}
	var out bytes.Buffer
	seen := map[string]bool{}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); block.Type != "CERTIFICATE" || err != nil || seen[string(block.Bytes)] {
			continue
		}
		seen[string(block.Bytes)] = true
		if err := pem.Encode(&out, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return nil, err
		}
	}
	if len(seen) == 0 {
		return nil, fmt.Errorf("%s has no PEM certificate", name)
	}
	return out.Bytes(), nil
}
