package ec2

import (
	"cmp"
	"slices"
	"strings"
)

// Count is how calls ended. Every call is in exactly one of OK, Throttled, Failed and Lost.
type Count struct{ Total, OK, Throttled, Failed, Lost int }

// Outcome is how a call ended.
type Outcome uint8

const (
	CallOK Outcome = iota
	CallThrottled
	CallFailed
	CallLost // the answer never reached the caller, whatever it was
	outcomes
)

var outcomeNames = [outcomes]string{"ok", "throttled", "failed", "lost"}

// String is the outcome in one word.
func (o Outcome) String() string {
	if o < outcomes {
		return outcomeNames[o]
	}
	return "unknown"
}

// LedgerRow is how often one caller's calls of one action ended one way.
type LedgerRow struct {
	Action  Action     // AnyAction: one that the API or the model does not have
	Node    InstanceID // the caller; "": one that is no instance
	Outcome Outcome
	Code    string // the error code when it was throttled or failed; "" when more codes were seen than the ledger keeps
	Calls   int
}

// tally counts the calls of one action.
type tally [outcomes]uint32

func (t tally) count() Count {
	n := Count{OK: int(t[CallOK]), Throttled: int(t[CallThrottled]), Failed: int(t[CallFailed]), Lost: int(t[CallLost])}
	n.Total = n.OK + n.Throttled + n.Failed + n.Lost
	return n
}

// codeKey is what failures are counted by besides.
type codeKey struct {
	code   string
	from   int32
	action Action
}

// mostCodeKeys bounds that table: codes come from the model, some 50 of them, and from Fail faults, which may name any.
const mostCodeKeys = 1 << 18

// record counts how one call ended.
func (c *Cloud) record(from int32, a Action, p *Response) {
	if !a.known() {
		a = AnyAction // kept apart, so that a caller that speaks nonsense can be seen
	}
	o := CallOK
	switch {
	case p.Lost:
		o = CallLost
	case p.Code == codeThrottled:
		o = CallThrottled
	case p.Code != "":
		o = CallFailed
		c.recordCode(codeKey{p.Code, max(from, none), a})
	}
	c.calls[a][o]++
	if from >= 0 {
		c.instances[from].calls[a][o]++
	}
}

// recordCode counts an error code.
func (c *Cloud) recordCode(k codeKey) {
	if c.codes == nil {
		c.codes = map[codeKey]uint32{}
	}
	if _, ok := c.codes[k]; ok || len(c.codes) < mostCodeKeys {
		c.codes[k]++
	}
}

// Calls is how all calls of an action ended; AnyAction gives those that named no known action.
func (c *Cloud) Calls(a Action) Count {
	if a >= ActionCount {
		return Count{}
	}
	return c.calls[a].count()
}

// CallsBy is Calls for those that one instance made.
func (c *Cloud) CallsBy(i InstanceID, a Action) Count {
	n := c.instanceIndex(i)
	if n < 0 || a >= ActionCount {
		return Count{}
	}
	return c.instances[n].calls[a].count()
}

// LedgerRows is the whole ledger: by action, then caller (third parties first, then instances from the oldest),
// outcome and code. Rows of no calls are left out.
func (c *Cloud) LedgerRows() []LedgerRow {
	codes := make([]codeKey, 0, len(c.codes))
	for k := range c.codes {
		codes = append(codes, k)
	}
	slices.SortFunc(codes, func(a, b codeKey) int {
		return cmp.Or(cmp.Compare(a.action, b.action), cmp.Compare(a.from, b.from), strings.Compare(a.code, b.code))
	})
	var rows []LedgerRow
	for a := range ActionCount {
		strangers := c.calls[a]
		for n := range c.instances {
			for o, calls := range c.instances[n].calls[a] {
				strangers[o] -= calls
			}
		}
		rows, codes = appendRows(rows, codes, a, none, "", &strangers, c.codes)
		for n := range c.instances {
			i := &c.instances[n]
			rows, codes = appendRows(rows, codes, a, int32(n), i.id, &i.calls[a], c.codes)
		}
	}
	return rows
}

// appendRows adds one caller's rows of one action and uses up its codes, which are the first in the list if there are any.
func appendRows(rows []LedgerRow, codes []codeKey, a Action, from int32, node InstanceID, t *tally, of map[codeKey]uint32) ([]LedgerRow, []codeKey) {
	for o := range outcomes {
		row := LedgerRow{Action: a, Node: node, Outcome: o, Calls: int(t[o])}
		switch o {
		case CallThrottled:
			row.Code = codeThrottled
		case CallFailed:
			for len(codes) > 0 && codes[0].action == a && codes[0].from == from {
				n := int(of[codes[0]])
				rows = append(rows, LedgerRow{a, node, o, codes[0].code, n})
				row.Calls -= n // what is left had codes beyond mostCodeKeys
				codes = codes[1:]
			}
		}
		if row.Calls > 0 {
			rows = append(rows, row)
		}
	}
	return rows, codes
}
