package conform

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// version is the API's.
const version = "2016-11-15"

// Bounds of what an endpoint may answer: one that is not EC2 may send anything.
const (
	maxAnswer = 32 << 20
	maxDepth  = 32
)

// answer is what came back: an HTTP answer, and what its XML says.
type answer struct {
	Status        int
	Header        http.Header
	Body          string
	Code, Message string // of an error
	root          element
}

// element is one of XML's; names are without namespace.
type element struct {
	name     string
	text     string
	children []*element
}

// all are the elements below e with a path, as "networkInterfaceSet/item/status".
func (e *element) all(path string) []*element {
	if e == nil {
		return nil
	}
	list := []*element{e}
	for name := range strings.SplitSeq(path, "/") {
		var next []*element
		for _, p := range list {
			for _, c := range p.children {
				if c.name == name {
					next = append(next, c)
				}
			}
		}
		list = next
	}
	return list
}

// texts are what the elements with a path say.
func (e *element) texts(path string) []string {
	out := []string{}
	for _, c := range e.all(path) {
		out = append(out, c.text)
	}
	return out
}

// say is what the first element with a path says, "" when there is none.
func (e *element) say(path string) string {
	if list := e.all(path); len(list) > 0 {
		return list[0].text
	}
	return ""
}

// get is the first element with a path; it may be asked for more when there is none.
func (e *element) get(path string) *element {
	if list := e.all(path); len(list) > 0 {
		return list[0]
	}
	return &element{}
}

func parse(body []byte) (root element, err error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	stack := []*element{{}}
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return root, err
		}
		top := stack[len(stack)-1]
		switch tok := tok.(type) {
		case xml.StartElement:
			e := &element{name: tok.Name.Local}
			top.children = append(top.children, e)
			if stack = append(stack, e); len(stack) > maxDepth {
				return root, fmt.Errorf("XML nested more than %d deep", maxDepth)
			}
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			top.text += string(tok)
		}
	}
	if len(stack[0].children) != 1 {
		return root, fmt.Errorf("expected one XML element, found %d", len(stack[0].children))
	}
	return *stack[0].children[0], nil
}

// signature says how a call is signed.
type signature uint8

const (
	signed     signature = iota
	unsigned             // not at all
	wrongKey             // with a key that does not exist
	wrongHash            // with another secret than the key's
	oldClock             // by a clock that is half an hour behind
	otherScope           // for another service
)

// post makes a Query call of what is in the body.
func (l *lab) post(ctx context.Context, body string, how signature) (*answer, error) {
	r := &http.Request{Method: http.MethodPost, URL: l.url("/"), Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}}}
	return l.sent(ctx, r, body, how)
}

// query makes a Query call with the verb GET.
func (l *lab) query(ctx context.Context, query string, how signature) (*answer, error) {
	u := *l.base
	u.Path, u.RawQuery = "/", query
	return l.sent(ctx, &http.Request{Method: http.MethodGet, URL: &u, Header: http.Header{}}, "", how)
}

// sent signs and sends a call, and reads what comes back as XML.
func (l *lab) sent(ctx context.Context, r *http.Request, body string, how signature) (*answer, error) {
	r.Host = r.URL.Host
	if err := l.sign(ctx, r, body, how); err != nil {
		return nil, err
	}
	a, err := l.roundTrip(ctx, r)
	if err != nil {
		return nil, err
	}
	a.root, err = parse([]byte(a.Body))
	if err != nil {
		return nil, fmt.Errorf("status %d, and a body that is not EC2's XML: %w", a.Status, err)
	}
	a.Code, a.Message = a.root.say("Errors/Error/Code"), a.root.say("Errors/Error/Message")
	if (a.Status == http.StatusOK) != (a.Code == "") {
		return nil, fmt.Errorf("status %d and error code %q do not go together", a.Status, a.Code)
	}
	return a, nil
}

func (l *lab) sign(ctx context.Context, r *http.Request, body string, how signature) error {
	key := aws.Credentials{AccessKeyID: l.AccessKey, SecretAccessKey: l.Secret, SessionToken: l.SessionToken}
	at, service := l.Now(), "ec2"
	switch how {
	case unsigned:
		return nil
	case wrongKey:
		key = aws.Credentials{AccessKeyID: "AKIAIOSFODNN7NOBODYS", SecretAccessKey: "none"}
	case wrongHash:
		key.SecretAccessKey += "x"
	case oldClock:
		at = at.Add(-30 * time.Minute)
	case otherScope:
		service = "s3"
	}
	sum := sha256.Sum256([]byte(body))
	return v4.NewSigner().SignHTTP(ctx, key, r, hex.EncodeToString(sum[:]), service, l.Region, at)
}

// roundTrip sends a request and reads what comes back.
func (l *lab) roundTrip(ctx context.Context, r *http.Request) (*answer, error) {
	p, err := l.HTTP.Do(r.WithContext(ctx))
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			l.gone.Store(&err)
		}
		return nil, err
	}
	l.gone.Store(nil)
	defer func() { _ = p.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(p.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	return &answer{Status: p.StatusCode, Header: p.Header, Body: string(data)}, nil
}

// form is a call's body: parameters are pairs of names and values.
func form(action string, pairs ...string) string {
	v := url.Values{"Action": {action}, "Version": {version}}
	for k := 0; k+1 < len(pairs); k += 2 {
		v.Set(pairs[k], pairs[k+1])
	}
	return v.Encode()
}
