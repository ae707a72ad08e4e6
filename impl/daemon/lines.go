package daemon

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/enilab/enilab/impl/ipam"
)

// lineCache keeps RunStore's rows as JSON. The file is written whole for every pod that comes or goes, and encoding the rows that did
// not change is nearly all that a pod of a full node would wait for: 1.5 ms of 110 pods.
type lineCache struct {
	of map[ipam.Key]line
}

// line is one row: an allocation, or an address that rests.
type line struct {
	text    json.RawMessage
	resting bool
}

// parts is the file's shape.
type parts struct {
	Version     string            `json:"version"`
	Allocations []json.RawMessage `json:"allocations"`
	Enilab      struct {
		Record  int               `json:"record"`
		Resting []json.RawMessage `json:"resting"`
	} `json:"enilab"`
}

func (c *lineCache) forget(k ipam.Key) { delete(c.of, k) }

// encode is ipam.EncodeRun of the rows, byte for byte.
func (c *lineCache) encode(version int, wall int64, rows map[ipam.Key]ipam.Row) ([]byte, error) {
	if c.of == nil {
		c.of = make(map[ipam.Key]line, len(rows))
	}
	keys := make([]ipam.Key, 0, len(rows))
	size := 128
	for k, r := range rows {
		l, ok := c.of[k]
		if !ok {
			var err error
			if l, err = encodeLine(version, wall, r); err != nil {
				return nil, err
			}
			c.of[k] = l
		}
		size += len(l.text) + 1
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b ipam.Key) int { return a.Address.Compare(b.Address) })
	frame, err := frameOf(version, wall)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, size), frame[0]...)
	out = append(c.list(out, keys, false), frame[1]...)
	return append(c.list(out, keys, true), frame[2]...), nil
}

// list appends the allocations, or what rests, with commas between them.
func (c *lineCache) list(out []byte, keys []ipam.Key, resting bool) []byte {
	first := true
	for _, k := range keys {
		l := c.of[k]
		if l.resting != resting {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		out, first = append(out, l.text...), false
	}
	return out
}

func encodeLine(version int, wall int64, r ipam.Row) (line, error) {
	data, err := ipam.EncodeRun(version, wall, []ipam.Row{r})
	if err != nil {
		return line{}, err
	}
	var p parts
	if err := json.Unmarshal(data, &p); err != nil {
		return line{}, err
	}
	switch {
	case len(p.Allocations) == 1:
		return line{p.Allocations[0], false}, nil
	case len(p.Enilab.Resting) == 1:
		return line{p.Enilab.Resting[0], true}, nil
	}
	return line{}, fmt.Errorf("address %v: expected one row in %s", r.Address, data)
}

// frameOf is an empty file in three parts, between which the rows go.
func frameOf(version int, wall int64) (frame [3][]byte, err error) {
	data, err := ipam.EncodeRun(version, wall, nil)
	if err != nil {
		return frame, err
	}
	for i := range 2 {
		at := slices.Index(data, '[')
		if at < 0 || at+1 >= len(data) || data[at+1] != ']' {
			return frame, fmt.Errorf("expected two empty lists in an empty record, found %s", data)
		}
		frame[i], data = data[:at+1], data[at+1:]
	}
	frame[2] = data
	return frame, nil
}
