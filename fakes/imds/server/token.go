package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strconv"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/imds"
)

const (
	// TokenHeader has the token of a request (IMDSv2).
	TokenHeader = "X-Aws-Ec2-Metadata-Token"
	ttlHeader   = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
	// maxTTL is six hours in seconds.
	maxTTL = 21600
	// tokenLength is that of every token: an instant and a seal, in base64.
	tokenLength = (8 + sha256.Size + 2) / 3 * 4
)

// token answers a PUT.
func (h *handler) token(w http.ResponseWriter, r *http.Request, id ec2.InstanceID) {
	sent := r.Header[ttlHeader]
	if len(sent) != 1 {
		fail(w, http.StatusBadRequest)
		return
	}
	ttl, err := strconv.Atoi(sent[0])
	if err != nil || ttl < 1 || ttl > maxTTL {
		fail(w, http.StatusBadRequest)
		return
	}
	w.Header().Set(ttlHeader, strconv.Itoa(ttl))
	send(w, &imds.Reply{Status: http.StatusOK, Type: "text/plain", Text: h.seal(h.Now()+time.Duration(ttl)*time.Second, id)})
}

// seal makes a token: the instant of its end, and a seal over that and the instance.
func (h *handler) seal(end time.Duration, id ec2.InstanceID) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(end))
	return base64.URLEncoding.EncodeToString(h.sum(b, id))
}

// sum appends a seal to b.
func (h *handler) sum(b []byte, id ec2.InstanceID) []byte {
	m := hmac.New(sha256.New, h.key[:])
	m.Write(b)
	m.Write([]byte(id))
	return m.Sum(b)
}

// open checks a token and says how long it lasts.
func (h *handler) open(token string, id ec2.InstanceID) (left time.Duration, ok bool) {
	if len(token) != tokenLength {
		return 0, false
	}
	b, err := base64.URLEncoding.DecodeString(token)
	if err != nil || len(b) != 8+sha256.Size || !hmac.Equal(b, h.sum(b[:8:8], id)) {
		return 0, false
	}
	left = time.Duration(binary.BigEndian.Uint64(b)) - h.Now()
	return left, left > 0
}
