package ipam

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// The two durable stores as bytes. RunStore is amazon-vpc-cni-k8s's ipam.json (datastore/checkpoint.go:79) with fields of
// our own, so that either CNI reads the other's; LibStore is ours alone.
//
// Three rules keep neighbours readable (rule C). New fields come to rows, never to the top of a file. A field's type never
// changes: another meaning takes another name. A name that a row's version does not know goes to Extra, and from there
// back into the row, where the fields that this version writes win.
const (
	runFormat = "vpc-cni-ipam/1"
	libFormat = "enilab-intents/1"
)

// wired is the record version that knows netns and veth.
const wired = 2

// fields is a JSON object whose members are taken one by one; what is not taken is Extra.
type fields map[string]json.RawMessage

// object reads a JSON object. The result is never nil without an error.
func object(raw []byte) (fields, error) {
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("expected an object: %w", err)
	}
	if f == nil {
		return nil, errors.New("expected an object, found null")
	}
	return f, nil
}

// take reads the member called key into to, and leaves to alone when there is none.
func (f fields) take(key string, to any) error {
	raw, ok := f[key]
	if !ok {
		return nil
	}
	delete(f, key)
	if string(raw) == "null" {
		return fmt.Errorf("%s: found null, expected a value", key)
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// need is take of a member that must be there.
func (f fields) need(key string, to any) error {
	if _, ok := f[key]; !ok {
		return fmt.Errorf("%s is missing", key)
	}
	return f.take(key, to)
}

// list reads an array of objects; null is an empty one, as Go programs write it.
func (f fields) list(key string) ([]json.RawMessage, error) {
	var l []json.RawMessage
	raw, ok := f[key]
	if !ok {
		return nil, fmt.Errorf("%s is missing", key)
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return l, nil
}

// put writes the member, over what Extra says of it.
func (f fields) put(key string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	f[key] = raw
	return nil
}

// extra is what was left, as text; "" when nothing was.
func (f fields) extra() (string, error) {
	if len(f) == 0 {
		return "", nil
	}
	raw, err := json.Marshal(f) // sorted by key
	return string(raw), err
}

// fromExtra is the object that Extra holds; "" is an empty one.
func fromExtra(extra string) (fields, error) {
	if extra == "" {
		return fields{}, nil
	}
	f, err := object([]byte(extra))
	if err != nil {
		return nil, fmt.Errorf("extra fields: %w", err)
	}
	return f, nil
}

// nested takes the object called key out of f; an empty one when there is none.
func (f fields) nested(key string) (fields, error) {
	raw, ok := f[key]
	if !ok {
		return fields{}, nil
	}
	delete(f, key)
	in, err := object(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return in, nil
}

// keep puts what is left of a nested object back, so that it becomes part of Extra.
func (f fields) keep(key string, in fields) error {
	if len(in) == 0 {
		return nil
	}
	return f.put(key, in)
}

// takeAddress reads an address without a zone.
func (f fields) takeAddress(key string, to *netip.Addr) error {
	var s string
	if err := f.take(key, &s); err != nil || s == "" {
		return err
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return fmt.Errorf("%s: expected an IP address, found %q", key, s)
	}
	*to = a
	return nil
}

// EncodeRun is RunStore's file as a program of that record version writes it (0 means Version). wallAtBoot is the wall clock
// at boot in seconds since 1970, for upstream's timestamps. Rows are assigned, cooling or quarantined addresses in any
// order; the bytes are the same for the same rows.
func EncodeRun(version int, wallAtBoot int64, rows []Row) ([]byte, error) {
	if version <= 0 {
		version = Version
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Row) int { return a.Address.Compare(b.Address) })
	allocations, resting := []fields{}, []fields{}
	for i := range rows {
		r := &rows[i]
		if i > 0 && rows[i-1].Address == r.Address {
			return nil, fmt.Errorf("encode run store: address %v: expected one row, found two", r.Address)
		}
		f, err := encodeRow(version, wallAtBoot, r)
		if err != nil {
			return nil, fmt.Errorf("encode run store: address %v: %w", r.Address, err)
		}
		if r.State == Assigned {
			allocations = append(allocations, f)
		} else {
			resting = append(resting, f)
		}
	}
	return json.Marshal(struct {
		Version     string   `json:"version"`
		Allocations []fields `json:"allocations"`
		Enilab      any      `json:"enilab"`
	}{runFormat, allocations, struct {
		Record  int      `json:"record"`
		Resting []fields `json:"resting"`
	}{version, resting}})
}

func encodeRow(version int, wallAtBoot int64, r *Row) (fields, error) {
	if !r.Address.IsValid() || r.Address.Zone() != "" || r.Intent != nil || r.State < Assigned || r.State > Departed {
		return nil, fmt.Errorf("expected an assigned, cooling or quarantined address, found state %v", r.State)
	}
	f, err := fromExtra(r.Extra)
	if err != nil {
		return nil, err
	}
	meta, err := f.nested("metadata")
	if err != nil {
		return nil, err
	}
	err = firstError(
		f.put("networkName", r.Att.Network), f.put("containerID", r.Att.ContainerID), f.put("ifName", r.Att.IfName),
		f.put("ipv4", r.Address.String()), f.put("allocatedAt", int64(r.Allocated)),
		f.putIf(r.ENI != "", "eni", r.ENI), f.putIf(r.SeenCRI, "seenRuntime", true), f.putIf(r.Prefixed, "prefixed", true), f.putIf(r.Pod.UID != "", "podUID", r.Pod.UID),
		meta.putIf(r.Pod.Namespace != "", "k8sPodNamespace", r.Pod.Namespace), meta.putIf(r.Pod.Name != "", "k8sPodName", r.Pod.Name),
	)
	if err != nil {
		return nil, err
	}
	if _, many := meta["interfacesCount"]; !many { // an upstream pod of several cards keeps its number
		meta["interfacesCount"] = json.RawMessage("1")
	}
	if version >= wired {
		err = firstError(f.putIf(r.Netns != 0, "netns", r.Netns), f.putIf(r.Veth != "", "veth", r.Veth), f.putIf(r.MAC != "", "mac", r.MAC))
	}
	if r.State == Assigned {
		err = firstError(err, f.put("allocationTimestamp", timestamp(wallAtBoot, r.Allocated)))
	} else {
		err = firstError(err, f.put("state", r.State.String()))
	}
	if r.Node != nil {
		err = firstError(err, f.putFacts(r.Node))
	}
	return f, firstError(err, f.putIf(r.State != Assigned || r.ReleasedAt != 0, "releasedAt", int64(r.ReleasedAt)), f.put("metadata", meta))
}

func (f fields) putIf(ok bool, key string, v any) error {
	if !ok {
		return nil
	}
	return f.put(key, v)
}

// timestamp is upstream's: wall clock in nanoseconds since 1970, held inside what an int64 can say.
func timestamp(wallAtBoot int64, at time.Duration) int64 {
	boot := bootNanoseconds(wallAtBoot)
	if at > 0 && boot > math.MaxInt64-int64(at) {
		return math.MaxInt64
	}
	return max(boot+int64(at), 0)
}

func bootNanoseconds(wallAtBoot int64) int64 {
	return min(max(wallAtBoot, 0), math.MaxInt64/int64(time.Second)) * int64(time.Second)
}

// DecodeRun reads RunStore's file, written by any record version of ours or by amazon-vpc-cni-k8s, as a program of that record
// version (0 means Version). The rows are sorted by address. Any damage is an error, and then there are no rows: a
// file half read would free the addresses of the other half.
func DecodeRun(version int, wallAtBoot int64, data []byte) ([]Row, error) {
	if version <= 0 {
		version = Version
	}
	rows, err := decodeRun(version, wallAtBoot, data)
	if err != nil {
		return nil, fmt.Errorf("decode run store (%d bytes): %w; rebuild it from kernel and runtime", len(data), err)
	}
	slices.SortFunc(rows, func(a, b Row) int { return a.Address.Compare(b.Address) })
	for i := range rows {
		if i > 0 && rows[i-1].Address == rows[i].Address {
			return nil, fmt.Errorf("decode run store: address %v: expected one row, found two; rebuild it from kernel and runtime", rows[i].Address)
		}
	}
	return rows, nil
}

func decodeRun(version int, wallAtBoot int64, data []byte) ([]Row, error) {
	top, err := header(data, runFormat)
	if err != nil {
		return nil, err
	}
	allocations, err := top.list("allocations")
	if err != nil {
		return nil, err
	}
	rows := make([]Row, 0, len(allocations))
	for i, raw := range allocations {
		r, err := decodeRow(version, wallAtBoot, raw, false)
		if err != nil {
			return nil, fmt.Errorf("allocation %d of %d: %w", i+1, len(allocations), err)
		}
		rows = append(rows, r)
	}
	if _, ours := top["enilab"]; !ours { // upstream's: it does not record what cools down
		return rows, nil
	}
	in, err := top.nested("enilab")
	if err != nil {
		return nil, err
	}
	if err := record(in); err != nil {
		return nil, err
	}
	resting, err := in.list("resting")
	if err != nil {
		return nil, err
	}
	for i, raw := range resting {
		r, err := decodeRow(version, wallAtBoot, raw, true)
		if err != nil {
			return nil, fmt.Errorf("resting address %d of %d: %w", i+1, len(resting), err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// header reads the top of a file and checks what kind it is.
func header(data []byte, format string) (fields, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("the file is empty, expected %q", format)
	}
	top, err := object(data)
	if err != nil {
		return nil, err
	}
	found := ""
	if err := top.need("version", &found); err != nil {
		return nil, err
	}
	if found != format {
		return nil, fmt.Errorf("version: expected %q, found %q", format, found)
	}
	return top, nil
}

// record checks the record version of what was written. Any is readable: what is newer is in fields of its own.
func record(f fields) error {
	n := 0
	if err := f.need("record", &n); err != nil {
		return err
	}
	if n < 1 {
		return fmt.Errorf("record: expected 1 or more, found %d", n)
	}
	return nil
}

func decodeRow(version int, wallAtBoot int64, raw []byte, resting bool) (Row, error) {
	f, err := object(raw)
	if err != nil {
		return Row{}, err
	}
	r := Row{State: Assigned}
	if err := f.takeAddress("ipv4", &r.Address); err != nil {
		return Row{}, err
	}
	if !r.Address.IsValid() {
		return Row{}, errors.New("ipv4 is missing")
	}
	if resting {
		err = f.takeState(&r.State)
	}
	if err = firstError(err, f.need("networkName", &r.Att.Network), f.need("containerID", &r.Att.ContainerID), f.need("ifName", &r.Att.IfName),
		f.take("eni", &r.ENI), f.take("seenRuntime", &r.SeenCRI), f.take("prefixed", &r.Prefixed), f.take("podUID", &r.Pod.UID), f.take("releasedAt", &r.ReleasedAt),
		f.takeAllocated(wallAtBoot, &r.Allocated), f.takePod(&r.Pod)); err != nil {
		return Row{}, fmt.Errorf("%v: %w", r.Address, err)
	}
	if version >= wired {
		if err := firstError(f.take("netns", &r.Netns), f.take("veth", &r.Veth), f.take("mac", &r.MAC)); err != nil {
			return Row{}, fmt.Errorf("%v: %w", r.Address, err)
		}
	}
	if err := f.takeFacts(&r.Node); err != nil {
		return Row{}, fmt.Errorf("%v: %w", r.Address, err)
	}
	r.Extra, err = f.extra()
	return r, err
}

// takeState reads the state of a resting address. One that this version does not know is read as quarantined: it is not
// given away, and comes back when nothing uses it.
func (f fields) takeState(to *State) error {
	s := ""
	if err := f.need("state", &s); err != nil {
		return err
	}
	switch s {
	case Cooling.String():
		*to = Cooling
	case Departed.String():
		*to = Departed
	case Free.String(), Assigned.String(), "":
		return fmt.Errorf("state: expected cooling or quarantined, found %q", s)
	default:
		*to = Quarantined
	}
	return nil
}

// takeAllocated prefers our own clock, and derives it from upstream's wall clock otherwise.
func (f fields) takeAllocated(wallAtBoot int64, to *time.Duration) error {
	var stamp int64
	if err := f.take("allocationTimestamp", &stamp); err != nil {
		return err
	}
	if _, ours := f["allocatedAt"]; ours {
		return f.take("allocatedAt", to)
	}
	*to = time.Duration(max(max(stamp, 0)-bootNanoseconds(wallAtBoot), 0))
	return nil
}

// takePod reads upstream's metadata.
func (f fields) takePod(to *Pod) error {
	meta, err := f.nested("metadata")
	if err != nil {
		return err
	}
	if err := firstError(meta.take("k8sPodNamespace", &to.Namespace), meta.take("k8sPodName", &to.Name)); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	if string(meta["interfacesCount"]) == "1" {
		delete(meta, "interfacesCount") // written anyway
	}
	return f.keep("metadata", meta)
}

// EncodeLib is LibStore's file as a program of that record version writes it (0 means Version). All rows are intents, in any
// order; the bytes are the same for the same rows.
func EncodeLib(version int, rows []Row) ([]byte, error) {
	if version <= 0 {
		version = Version
	}
	rows = slices.Clone(rows)
	intents := make([]fields, 0, len(rows))
	for i := range rows {
		if rows[i].Intent == nil || rows[i].Intent.Token == "" {
			return nil, fmt.Errorf("encode lib store: row %d of %d: expected an intent with a token", i+1, len(rows))
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Intent.Token, b.Intent.Token) })
	for i := range rows {
		in := rows[i].Intent
		if i > 0 && rows[i-1].Intent.Token == in.Token {
			return nil, fmt.Errorf("encode lib store: intent %q: expected one row, found two", in.Token)
		}
		f, err := encodeIntent(in)
		if err != nil {
			return nil, fmt.Errorf("encode lib store: intent %q: %w", in.Token, err)
		}
		intents = append(intents, f)
	}
	return json.Marshal(struct {
		Version string   `json:"version"`
		Record  int      `json:"record"`
		Intents []fields `json:"intents"`
	}{libFormat, version, intents})
}

func encodeIntent(in *Intent) (fields, error) {
	f, err := fromExtra(in.Extra)
	if err != nil {
		return nil, err
	}
	eni, err := f.nested("eni")
	if err != nil {
		return nil, err
	}
	e := &in.ENI
	err = firstError(
		f.put("token", in.Token), f.putIf(in.Stage != 0, "stage", in.Stage.String()), f.putIf(in.Doing != 0, "doing", in.Doing.String()),
		f.putIf(in.Count != 0, "count", in.Count), f.putAddresses("before", in.Before), f.putIf(in.Wall != 0, "wall", in.Wall),
		f.putIf(in.Foreign, "foreign", true), f.putIf(in.Prefixed, "prefixed", true),
		eni.putIf(e.ID != "", "id", e.ID), eni.putIf(e.MAC != "", "mac", e.MAC), eni.putIf(e.Device != 0, "device", e.Device),
		eni.putIf(e.Subnet != "", "subnet", e.Subnet), eni.putIf(e.CIDR.IsValid(), "cidr", e.CIDR), eni.putIf(e.Primary.IsValid(), "primary", e.Primary.WithZone("")),
		eni.putAddresses("addresses", e.Addresses), eni.putIf(len(e.Prefixes) > 0, "prefixes", e.Prefixes), eni.putIf(e.Status != "", "status", e.Status),
		eni.putIf(e.Attachment != "", "attachment", e.Attachment), eni.putIf(e.Instance != "", "instance", e.Instance),
		eni.putIf(e.Owner != "", "owner", e.Owner), eni.putIf(e.Created != 0, "created", e.Created), eni.putIf(e.DOT, "dot", true),
		eni.putIf(e.Partial, "partial", true), eni.putIf(len(e.Groups) > 0, "groups", e.Groups),
	)
	return f, firstError(err, f.keep("eni", eni))
}

// DecodeLib reads LibStore's file, written by any record version, as a program of that record version (0 means Version).
// The rows are sorted by token. Any damage is an error, and then there are no rows.
func DecodeLib(version int, data []byte) ([]Row, error) {
	rows, err := decodeLib(data)
	if err != nil {
		return nil, fmt.Errorf("decode lib store (%d bytes): %w; the sweep and the reconcilers find what it spoke of", len(data), err)
	}
	return rows, nil
}

func decodeLib(data []byte) ([]Row, error) {
	top, err := header(data, libFormat)
	if err != nil {
		return nil, err
	}
	if err := record(top); err != nil {
		return nil, err
	}
	intents, err := top.list("intents")
	if err != nil {
		return nil, err
	}
	rows := make([]Row, 0, len(intents))
	for i, raw := range intents {
		in, err := decodeIntent(raw)
		if err != nil {
			return nil, fmt.Errorf("intent %d of %d: %w", i+1, len(intents), err)
		}
		rows = append(rows, Row{Intent: in})
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Intent.Token, b.Intent.Token) })
	for i := range rows {
		if i > 0 && rows[i-1].Intent.Token == rows[i].Intent.Token {
			return nil, fmt.Errorf("intent %q: expected one row, found two", rows[i].Intent.Token)
		}
	}
	return rows, nil
}

func decodeIntent(raw []byte) (*Intent, error) {
	f, err := object(raw)
	if err != nil {
		return nil, err
	}
	in := &Intent{}
	if err := f.need("token", &in.Token); err != nil {
		return nil, err
	}
	if in.Token == "" {
		return nil, errors.New("token: expected one, found an empty text")
	}
	eni, err := f.nested("eni")
	if err != nil {
		return nil, fmt.Errorf("%q: %w", in.Token, err)
	}
	e := &in.ENI
	if err := firstError(
		takeName(f, "stage", stageNames[:], &in.Stage), takeName(f, "doing", actionNames[:], &in.Doing), f.take("count", &in.Count),
		f.takeAddresses("before", &in.Before), f.take("wall", &in.Wall), f.take("foreign", &in.Foreign), f.take("prefixed", &in.Prefixed),
		eni.take("id", &e.ID), eni.take("mac", &e.MAC), eni.take("device", &e.Device), eni.take("subnet", &e.Subnet), eni.takePrefix("cidr", &e.CIDR),
		eni.takeAddress("primary", &e.Primary), eni.takeAddresses("addresses", &e.Addresses), eni.takePrefixes("prefixes", &e.Prefixes), eni.take("status", &e.Status),
		eni.take("attachment", &e.Attachment), eni.take("instance", &e.Instance), eni.take("owner", &e.Owner), eni.take("created", &e.Created),
		eni.take("dot", &e.DOT), eni.take("partial", &e.Partial), eni.take("groups", &e.Groups), f.keep("eni", eni),
	); err != nil {
		return nil, fmt.Errorf("%q: %w", in.Token, err)
	}
	in.Extra, err = f.extra()
	return in, err
}

// takeName reads a name of a list. One that this version does not know stays where it is, for those who do; to is then 0.
func takeName[T ~uint8](f fields, key string, names []string, to *T) error {
	raw, ok := f[key]
	if !ok {
		return nil
	}
	s := ""
	if err := f.take(key, &s); err != nil {
		return err
	}
	if i := slices.Index(names, s); i > 0 {
		*to = T(i)
	} else if s != "" {
		f[key] = raw
	}
	return nil
}

// putAddresses leaves out what is no address, which could not be read again.
func (f fields) putAddresses(key string, list []netip.Addr) error {
	texts := make([]string, 0, len(list))
	for _, a := range list {
		if a.IsValid() {
			texts = append(texts, a.WithZone("").String())
		}
	}
	return f.putIf(len(texts) > 0, key, texts)
}

func (f fields) takePrefix(key string, to *netip.Prefix) error {
	s := ""
	if err := f.take(key, &s); err != nil || s == "" {
		return err
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return fmt.Errorf("%s: expected an address and a length, found %q", key, s)
	}
	*to = p
	return nil
}

// takePrefixes reads /28 prefixes on their own boundaries.
func (f fields) takePrefixes(key string, to *[]netip.Prefix) error {
	var list []netip.Prefix
	if err := f.take(key, &list); err != nil {
		return err
	}
	for _, p := range list {
		if !p.Addr().Is4() || p.Bits() != prefixBits || p != p.Masked() {
			return fmt.Errorf("%s: expected /%d prefixes on their own boundaries, found %v", key, prefixBits, p)
		}
	}
	*to = list
	return nil
}

func (f fields) takeAddresses(key string, to *[]netip.Addr) error {
	var list []string
	if err := f.take(key, &list); err != nil {
		return err
	}
	for _, s := range list {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return fmt.Errorf("%s: expected IP addresses, found %q", key, s)
		}
		*to = append(*to, a)
	}
	return nil
}
