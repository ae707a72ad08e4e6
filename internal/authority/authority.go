// Package authority is a certificate authority of one laboratory: servers under public names, such as
// ec2.us-west-2.amazonaws.com or kubernetes.default.svc, get certificates that only the laboratory's own clients trust.
//
//	a, err := authority.New(nil)
//	config, err := a.TLS("ec2.us-west-2.amazonaws.com", "10.100.0.1")
//	listener = tls.NewListener(listener, config)
//	os.WriteFile(bundle, a.PEM(), 0o644) // AWS_CA_BUNDLE, SSL_CERT_FILE, a service account's ca.crt
package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"
)

// Certificates are valid for a node whose clock is anywhere near the laboratory's epoch, 2026-01-01, or today's.
var (
	from  = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)
	until = time.Date(2036, time.January, 1, 0, 0, 0, 0, time.UTC)
)

// Authority signs certificates. It may be used concurrently if its random source may.
type Authority struct {
	random io.Reader
	cert   *x509.Certificate
	key    signer
}

// New makes an authority. With a random source of the caller's it is the same each time that source is; nil is the machine's.
func New(random io.Reader) (*Authority, error) {
	if random == nil {
		random = rand.Reader
	}
	a := &Authority{random: random}
	var err error
	if a.key, err = a.newKey(); err != nil {
		return nil, err
	}
	serial, err := a.serial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "enilab"}, NotBefore: from, NotAfter: until, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	a.cert, err = a.sign(template, template, a.key)
	return a, err
}

// PEM is the authority's certificate, for clients that shall trust it.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Leaf is a server's certificate for host names and addresses.
func (a *Authority) Leaf(names ...string) (tls.Certificate, error) {
	if len(names) == 0 {
		return tls.Certificate{}, fmt.Errorf("make a certificate: it is for nobody: give a name or an address")
	}
	key, err := a.newKey()
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := a.serial()
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: names[0]}, NotBefore: from, NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	cert, err := a.sign(template, a.cert, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{cert.Raw, a.cert.Raw}, PrivateKey: key.PrivateKey, Leaf: cert}, nil
}

// TLS is the configuration of a server of these names. It speaks what clients of 2019 speak.
func (a *Authority) TLS(names ...string) (*tls.Config, error) {
	leaf, err := a.Leaf(names...)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{leaf}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}

func (a *Authority) sign(template, parent *x509.Certificate, key signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(nil, template, parent, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %s: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}

// newKey takes a key from the random source. crypto/ecdsa ignores the source that it is given, so that no caller
// relies on how it reads it.
func (a *Authority) newKey() (signer, error) {
	scalar := make([]byte, 32)
	for range 100 { // one of 2^32 is out of range
		if _, err := io.ReadFull(a.random, scalar); err != nil {
			return signer{}, fmt.Errorf("make a key: %w", err)
		}
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar); err == nil {
			return signer{key}, nil
		}
	}
	return signer{}, fmt.Errorf("make a key: the random source gives no number that is one")
}

func (a *Authority) serial() (*big.Int, error) {
	b := make([]byte, 16)
	if _, err := io.ReadFull(a.random, b); err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	b[0] = b[0]&0x7f | 0x40 // positive, and of one length
	return new(big.Int).SetBytes(b), nil
}

// signer signs without a random number (RFC 6979), so that one key and one text have one signature.
type signer struct{ *ecdsa.PrivateKey }

func (s signer) Sign(_ io.Reader, digest []byte, o crypto.SignerOpts) ([]byte, error) {
	return s.PrivateKey.Sign(nil, digest, o)
}
