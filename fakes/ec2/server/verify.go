package server

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// signatureLife is how far a signature's date may lie from the time of day ("Error codes for the Amazon EC2 API": RequestExpired).
const signatureLife = 15 * time.Minute

// verified is who signed a request, when its age and its signature are right, as far as Options want them to be.
func (h *handler) verified(g *signature, r *http.Request, query string, body []byte) (Signer, *fault) {
	if h.Clock != nil && g.expired(h.Clock()) {
		return g.Signer, bad("RequestExpired", "Request has expired.")
	}
	if h.Keys == nil {
		return g.Signer, nil
	}
	secret, ok := h.Keys(g.AccessKey)
	if !ok || !hmac.Equal([]byte(g.hex), []byte(g.sign(secret, g.canonical(r, query, body)))) {
		return g.Signer, &fault{http.StatusUnauthorized, "AuthFailure", "AWS was not able to validate the provided access credentials"}
	}
	g.Verified = true
	return g.Signer, nil
}

// expired says whether a signature is too old, or of a time to come.
func (g *signature) expired(now time.Time) bool {
	life := signatureLife
	if g.expires > 0 {
		life = g.expires
	}
	age := now.Sub(g.at)
	return age > life || age < -signatureLife
}

// canonical is the request as its signer wrote it down ("Create a signed AWS API request", step 1).
func (g *signature) canonical(r *http.Request, query string, body []byte) []byte {
	b := make([]byte, 0, 1024)
	b = append(append(append(b, r.Method...), "\n/\n"...), query...)
	b = append(b, '\n')
	for rest := g.names; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, ";")
		b = append(append(b, name...), ':')
		b = appendHeader(b, r, name)
		b = append(b, '\n')
	}
	b = append(append(append(b, '\n'), g.names...), '\n')
	sum := sha256.Sum256(body)
	return hex.AppendEncode(b, sum[:])
}

// appendHeader adds a header's values, with single spaces.
func appendHeader(b []byte, r *http.Request, name string) []byte {
	values := r.Header.Values(name)
	switch {
	case name == "host":
		return append(b, r.Host...)
	case name == "content-length" && len(values) == 0:
		return strconv.AppendInt(b, r.ContentLength, 10)
	}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, strings.Join(strings.Fields(v), " ")...)
	}
	return b
}

// sign is the signature of a canonical request, in hexadecimal digits (steps 2 to 4).
func (g *signature) sign(secret string, canonical []byte) string {
	sum := sha256.Sum256(canonical)
	text := algorithm + "\n" + g.stamp + "\n" + g.day + "/" + g.Region + "/" + g.Service + "/aws4_request\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + secret)
	for _, part := range [...]string{g.day, g.Region, g.Service, "aws4_request", text} {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(part))
		key = m.Sum(nil)
	}
	return hex.EncodeToString(key)
}

// canonicalQuery is a URL's parameters as they are signed: encoded in one way, in order, without the signature.
func canonicalQuery(raw string) (string, *fault) {
	var pairs [][2]string
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		k, v, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(k)
		if err == nil {
			v, err = url.QueryUnescape(v)
		}
		if err != nil || len(pairs) == maxParameters {
			return "", malformed("near '" + excerpt(pair) + "'")
		}
		if name != "X-Amz-Signature" {
			pairs = append(pairs, [2]string{encode(name), encode(v)})
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1])) })
	var b strings.Builder
	for i, p := range pairs {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p[0] + "=" + p[1])
	}
	return b.String(), nil
}

// encode is AWS's own percent encoding: all bytes but letters, digits and four marks, in upper case.
func encode(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
