package server

import (
	"net/http"
	"strings"
	"time"
)

const algorithm = "AWS4-HMAC-SHA256"

// signerOf reads the Authorization header of Signature Version 4:
//
//	AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/ec2/aws4_request, SignedHeaders=host;x-amz-date, Signature=HEX
func signerOf(h http.Header) (Signer, *fault) {
	s := Signer{Token: h.Get("X-Amz-Security-Token")}
	text := h.Get("Authorization")
	if text == "" {
		return s, &fault{http.StatusForbidden, "MissingAuthenticationToken", "Request is missing Authentication Token"}
	}
	rest, ok := strings.CutPrefix(text, algorithm+" ")
	if !ok {
		return s, incomplete("Authorization header must begin with '" + algorithm + "'.")
	}
	part := map[string]string{}
	for field := range strings.SplitSeq(rest, ",") {
		k, v, ok := strings.Cut(strings.TrimSpace(field), "=")
		if _, twice := part[k]; !ok || v == "" || twice {
			return s, incomplete("Authorization header has a field that is not KEY=VALUE, or one twice.")
		}
		part[k] = v
	}
	for _, k := range [...]string{"Credential", "SignedHeaders", "Signature"} {
		if part[k] == "" {
			return s, incomplete("Authorization header requires '" + k + "' parameter.")
		}
	}
	stamp, err := time.Parse("20060102T150405Z", h.Get("X-Amz-Date"))
	if err != nil {
		return s, incomplete("Authorization header requires existence of a 'X-Amz-Date' header, as 20060102T150405Z.")
	}
	if !hexadecimal(part["Signature"], 64) {
		return s, incomplete("Authorization header's Signature must be 64 hexadecimal digits.")
	}
	if !signedHost(part["SignedHeaders"]) {
		return s, incomplete("Authorization header's SignedHeaders must name host and x-amz-date.")
	}
	return s, s.scope(part["Credential"], stamp)
}

// scope takes KEY/DATE/REGION/ec2/aws4_request apart.
func (s *Signer) scope(credential string, stamp time.Time) *fault {
	v := strings.Split(credential, "/")
	if len(v) != 5 || v[0] == "" || v[2] == "" {
		return incomplete("Authorization header's Credential must be KEY/DATE/REGION/ec2/aws4_request.")
	}
	s.AccessKey, s.Region = v[0], v[2]
	switch {
	case v[3] != "ec2":
		return forbidden("Credential should be scoped to correct service: 'ec2'.")
	case v[4] != "aws4_request":
		return forbidden("Credential should be scoped with a valid terminator: 'aws4_request'.")
	case v[1] != stamp.Format("20060102"):
		return forbidden("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP.")
	}
	return nil
}

func incomplete(message string) *fault { return bad("IncompleteSignature", message) }

func forbidden(message string) *fault {
	return &fault{http.StatusForbidden, "SignatureDoesNotMatch", message}
}

// signedHost says whether the headers that must be signed are among those that are.
func signedHost(list string) bool {
	host, date := false, false
	for name := range strings.SplitSeq(list, ";") {
		host = host || name == "host"
		date = date || name == "x-amz-date"
	}
	return host && date
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
