package server

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const algorithm = "AWS4-HMAC-SHA256"

// stampForm is how X-Amz-Date is written.
const stampForm = "20060102T150405Z"

// signature is what a request says of its own signing ("Authenticating requests (AWS Signature Version 4)").
type signature struct {
	Signer
	day     string // of the scope
	stamp   string // X-Amz-Date
	at      time.Time
	expires time.Duration // of a presigned request; 0: signed in its header
	names   string        // of the signed headers, as given
	hex     string
}

// signedHeader reads the Authorization header:
//
//	AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/ec2/aws4_request, SignedHeaders=host;x-amz-date, Signature=HEX
func signedHeader(h http.Header) (*signature, *fault) {
	text := h.Get("Authorization")
	if text == "" {
		return nil, &fault{http.StatusForbidden, "MissingAuthenticationToken", "Request is missing Authentication Token"}
	}
	rest, ok := strings.CutPrefix(text, algorithm+" ")
	if !ok {
		return nil, incomplete("Authorization header must begin with '" + algorithm + "'.")
	}
	var credential string
	g := &signature{Signer: Signer{Token: h.Get("X-Amz-Security-Token")}, stamp: h.Get("X-Amz-Date")}
	for rest != "" {
		var field string
		field, rest, _ = strings.Cut(rest, ",")
		k, v, _ := strings.Cut(strings.TrimSpace(field), "=")
		part := new(string)
		switch k {
		case "Credential":
			part = &credential
		case "SignedHeaders":
			part = &g.names
		case "Signature":
			part = &g.hex
		}
		if v == "" || *part != "" {
			return nil, incomplete("Authorization header has a field that is not KEY=VALUE, or one twice.")
		}
		*part = v
	}
	for _, part := range [...][2]string{{"Credential", credential}, {"SignedHeaders", g.names}, {"Signature", g.hex}} {
		if part[1] == "" {
			return nil, incomplete("Authorization header requires '" + part[0] + "' parameter.")
		}
	}
	if f := g.check(credential); f != nil {
		return nil, f
	}
	if !hasName(g.names, "x-amz-date") {
		return nil, incomplete("Authorization header's SignedHeaders must name host and x-amz-date.")
	}
	return g, nil
}

// presigned reads the parameters X-Amz-* of a URL, and gives the other parameters.
func presigned(query string) (*signature, string, *fault) {
	if !strings.Contains(query, "X-Amz-Signature=") {
		return nil, "", &fault{http.StatusForbidden, "MissingAuthenticationToken", "Request is missing Authentication Token"}
	}
	given := map[string]string{}
	rest := make([]string, 0, 16)
	for pair := range strings.SplitSeq(query, "&") {
		k, v, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(k, "X-Amz-") {
			rest = append(rest, pair)
			continue
		}
		v, err := url.QueryUnescape(v)
		if _, twice := given[k]; err != nil || twice {
			return nil, "", malformed("near '" + excerpt(pair) + "'")
		}
		given[k] = v
	}
	if given["X-Amz-Algorithm"] != algorithm {
		return nil, "", incomplete("X-Amz-Algorithm must be '" + algorithm + "'.")
	}
	seconds, err := strconv.Atoi(given["X-Amz-Expires"])
	if err != nil || seconds < 1 || seconds > 7*24*3600 {
		return nil, "", incomplete("X-Amz-Expires must be a number of seconds between 1 and 604800.")
	}
	g := &signature{
		Signer: Signer{Token: given["X-Amz-Security-Token"]}, stamp: given["X-Amz-Date"], names: given["X-Amz-SignedHeaders"],
		hex: given["X-Amz-Signature"], expires: time.Duration(seconds) * time.Second,
	}
	return g, strings.Join(rest, "&"), g.check(given["X-Amz-Credential"])
}

// check looks at the form of what was given, and takes the credential apart: KEY/DATE/REGION/ec2/aws4_request.
func (g *signature) check(credential string) *fault {
	at, err := time.Parse(stampForm, g.stamp)
	if err != nil || len(g.stamp) != len(stampForm) {
		return incomplete("Authorization header requires existence of a 'X-Amz-Date' header, as " + stampForm + ".")
	}
	g.at = at
	if !hexadecimal(g.hex, 64) {
		return incomplete("Authorization header's Signature must be 64 hexadecimal digits.")
	}
	if !hasName(g.names, "host") {
		return incomplete("Authorization header's SignedHeaders must name host and x-amz-date.")
	}
	var v [5]string
	rest, more := credential, true
	for i := range v {
		if !more {
			return incomplete("Authorization header's Credential must be KEY/DATE/REGION/ec2/aws4_request.")
		}
		v[i], rest, more = strings.Cut(rest, "/")
	}
	if more || v[0] == "" || v[2] == "" {
		return incomplete("Authorization header's Credential must be KEY/DATE/REGION/ec2/aws4_request.")
	}
	g.AccessKey, g.day, g.Region, g.Service = v[0], v[1], v[2], v[3]
	switch {
	case g.Service != "ec2":
		return forbidden("Credential should be scoped to correct service: 'ec2'.")
	case v[4] != "aws4_request":
		return forbidden("Credential should be scoped with a valid terminator: 'aws4_request'.")
	case g.day != g.stamp[:len("20060102")]:
		return forbidden("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP.")
	}
	return nil
}

func incomplete(message string) *fault { return bad("IncompleteSignature", message) }

func forbidden(message string) *fault {
	return &fault{http.StatusForbidden, "SignatureDoesNotMatch", message}
}

// hasName says whether a header is among those that are signed.
func hasName(list, name string) bool {
	for rest := list; rest != ""; {
		var v string
		if v, rest, _ = strings.Cut(rest, ";"); v == name {
			return true
		}
	}
	return false
}

// hexadecimal says whether text is n lower case hexadecimal digits.
func hexadecimal(text string, n int) bool {
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(text) == n
}
