package server

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"time"

	"github.com/enilab/enilab/fakes/imds"
)

// Signer signs identity documents as a region of AWS does. It may be used concurrently.
type Signer struct {
	key  *rsa.PrivateKey
	cert *x509.Certificate
}

// NewSigner makes a key of 2048 bits and its certificate, valid for ever; it takes about 0.1 s.
func NewSigner() *Signer {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return &Signer{} // the system has no random numbers: Go ends the program before
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"enilab"}, CommonName: "instance identity"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return &Signer{key: key}
	}
	cert, _ := x509.ParseCertificate(der) // it was made here
	return &Signer{key, cert}
}

// Certificate is what verifies the signatures, in PEM.
func (s *Signer) Certificate() []byte {
	if s.cert == nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert.Raw})
}

// sign is a text beside the identity document: base64 in lines of 64.
func (s *Signer) sign(kind imds.Signature, document string) string {
	if s.cert == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(document))
	der, err := rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, sum[:])
	if err == nil && kind != imds.Plain {
		der, err = s.message([]byte(document), der)
	}
	if err != nil {
		return ""
	}
	var b bytes.Buffer
	for text := base64.StdEncoding.EncodeToString(der); text != ""; {
		n := min(len(text), 64)
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(text[:n])
		text = text[n:]
	}
	return b.String()
}

// What a PKCS #7 message is made of (RFC 2315, 9).
type (
	contentInfo struct {
		Type    asn1.ObjectIdentifier
		Content any `asn1:"explicit,tag:0"`
	}
	signedData struct {
		Version      int
		Digests      []pkix.AlgorithmIdentifier `asn1:"set"`
		Content      contentInfo
		Certificates []asn1.RawValue `asn1:"implicit,tag:0,set"`
		Signers      []signerInfo    `asn1:"set"`
	}
	signerInfo struct {
		Version   int
		Issuer    issuer
		Digest    pkix.AlgorithmIdentifier
		Cipher    pkix.AlgorithmIdentifier
		Signature []byte
	}
	issuer struct {
		Name   asn1.RawValue
		Serial *big.Int
	}
)

// message is a PKCS #7 message with the document, its signature and the certificate.
func (s *Signer) message(document, signature []byte) ([]byte, error) {
	null := asn1.RawValue{Tag: asn1.TagNull}
	digest := pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}, Parameters: null} // SHA-256
	cipher := pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}, Parameters: null}     // RSA
	return asn1.Marshal(contentInfo{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2}, signedData{
		Version: 1, Digests: []pkix.AlgorithmIdentifier{digest},
		Content:      contentInfo{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}, document},
		Certificates: []asn1.RawValue{{FullBytes: s.cert.Raw}},
		Signers:      []signerInfo{{1, issuer{asn1.RawValue{FullBytes: s.cert.RawIssuer}, s.cert.SerialNumber}, digest, cipher, signature}},
	}})
}
