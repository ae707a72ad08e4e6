package ec2

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// keys are the keys that each kind takes in a fault's text; "for" goes wherever "until" does.
func (k FaultKind) keys() []string {
	switch k {
	case Fail:
		return []string{"action", "node", "code", "times", "until", "after"}
	case Slow, SlowAnswer, StaleReads:
		return []string{"action", "node", "by", "times", "until"}
	case ClockSkew:
		return []string{"action", "node", "by", "code", "times", "until"}
	case DetachHangs, AttachHangs, DeleteInUse:
		return []string{"node", "times", "until"}
	case IMDSSilent:
		return []string{"node", "until"}
	case DetachByStranger, DeleteByStranger:
		return []string{"action", "node", "eni", "times", "until"}
	case UnassignByStranger:
		return []string{"action", "node", "eni", "address", "times", "until"}
	case AllowOnly:
		return []string{"allow", "node", "until"}
	case DrainByStranger:
		return []string{"action", "node", "subnet", "leave", "times", "until"}
	}
	return []string{"action", "node", "times", "until"}
}

// Usage is the text of a fault of that kind, as a person would be told to write it.
func (k FaultKind) Usage() string {
	s := k.String()
	for _, key := range k.keys() {
		s += " [" + key + "=" + keyValues[key] + "]"
	}
	return s
}

var keyValues = map[string]string{"action": "ACTION", "node": "INSTANCE", "code": "CODE", "by": "DURATION", "times": "COUNT",
	"until": "DURATION", "eni": "ENI", "address": "ADDRESS", "subnet": "SUBNET", "leave": "COUNT", "allow": "ACTION,...",
	"after": "executed"}

// String is the fault in one line, what ParseFault reads: "Fail action=AttachNetworkInterface node=i-0abc code=InternalError times=3".
// What is zero is left out.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.Kind.String())
	for _, key := range f.Kind.keys() {
		if v := f.value(key); v != "" {
			b.WriteString(" " + key + "=" + v)
		}
	}
	return b.String()
}

// value is what the fault's text says for a key, "" for nothing.
func (f *Fault) value(key string) string {
	switch key {
	case "action":
		if f.Action.known() {
			return f.Action.String()
		}
	case "node":
		return string(f.Instance)
	case "code":
		return f.Code
	case "by":
		return durationText(*f.by())
	case "times":
		return countText(f.Times)
	case "until":
		return durationText(f.Until)
	case "eni":
		return string(f.ENI)
	case "address":
		if f.Address.IsValid() {
			return f.Address.String()
		}
	case "subnet":
		return string(f.Subnet)
	case "leave":
		return countText(f.Leave)
	case "allow":
		return f.Allow.String()
	case "after":
		if f.Executed {
			return executed
		}
	}
	return ""
}

// by is the field that "by" stands for.
func (f *Fault) by() *time.Duration {
	if f.Kind == Slow || f.Kind == SlowAnswer {
		return &f.Slow
	}
	return &f.By
}

func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func countText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// What has become of a request that an error answers.
const (
	executed = "executed"
	dropped  = "dropped"
)

// Bounds of a fault's text: it comes over an admin endpoint.
const (
	mostFaultText  = 1024
	mostFaultTimes = 1 << 30
	mostFaultTime  = 100 * 365 * 24 * time.Hour // far from where sums of durations overflow
)

// ParseFault reads a fault's text: the kind, then KEY=VALUE in any order. Keys are action (default: any), node (an instance ID; default:
// every caller), code, by (a duration), after (executed), times, until (an instant) or for (a duration from now on), eni, address, subnet and leave; which
// ones a kind takes its Usage says.
func ParseFault(now time.Duration, text string) (Fault, error) {
	if len(text) > mostFaultText {
		return Fault{}, fmt.Errorf("ec2 fault: %d bytes, at most %d are read: name one fault", len(text), mostFaultText)
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return Fault{}, fmt.Errorf("ec2 fault: the text is empty: begin with a kind, one of %v", FaultKinds())
	}
	kind, ok := parseFaultKind(words[0])
	if !ok {
		return Fault{}, fmt.Errorf("ec2 fault: there is no kind %.40q: use one of %v", words[0], FaultKinds())
	}
	f := Fault{Kind: kind}
	seen := map[string]bool{}
	for _, word := range words[1:] {
		key, value, ok := strings.Cut(word, "=")
		from := time.Duration(0)
		if key == "for" {
			key, from = "until", max(now, 0)
		}
		switch {
		case !ok || value == "":
			return Fault{}, fmt.Errorf("ec2 fault: %v: found %.80q, expected KEY=VALUE: write %s", kind, word, kind.Usage())
		case !slices.Contains(kind.keys(), key):
			return Fault{}, fmt.Errorf("ec2 fault: %v takes no %.40q: write %s", kind, key, kind.Usage())
		case seen[key]:
			return Fault{}, fmt.Errorf("ec2 fault: %v: %s is given twice: take one out", kind, key)
		}
		seen[key] = true
		if err := f.set(from, key, value); err != nil {
			return Fault{}, fmt.Errorf("ec2 fault: %v: %s: %w", kind, key, err)
		}
	}
	return f, nil
}

// set sets the field of a key from its text; an instant counts from what is given.
func (f *Fault) set(from time.Duration, key, value string) (err error) {
	switch key {
	case "action":
		if a, ok := ParseAction(value); ok {
			f.Action = a
		} else if value != "any" {
			return fmt.Errorf("there is no action %.60q: name one of the API's, or any", value)
		}
	case "node":
		f.Instance = InstanceID(value)
	case "code":
		f.Code = value
	case "by":
		*f.by(), err = parseTime(value, f.Kind == ClockSkew)
	case "times":
		f.Times, err = parseCount(value, 1)
	case "until":
		f.Until, err = parseTime(value, false)
		f.Until += from
	case "eni":
		f.ENI = ENIID(value)
	case "address":
		if f.Address, err = netip.ParseAddr(value); err != nil {
			return fmt.Errorf("%.40q is no address: write one such as 10.0.0.7", value)
		}
	case "subnet":
		f.Subnet = SubnetID(value)
	case "allow":
		f.Allow, err = ParseActions(value)
	case "leave":
		f.Leave, err = parseCount(value, 0)
	case "after":
		if f.Executed = value == executed; !f.Executed && value != dropped {
			return fmt.Errorf("found %.40q: write %s, or %s, which is the same as to leave it out", value, executed, dropped)
		}
	}
	return err
}

func parseTime(value string, negative bool) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%.40q is no duration: write one such as 1m30s", value)
	case d < 0 && !negative:
		return 0, fmt.Errorf("%v is negative: leave the sign out", d)
	case d > mostFaultTime || d < -mostFaultTime:
		return 0, fmt.Errorf("%v is more than a hundred years: write less", d)
	}
	return d, nil
}

func parseCount(value string, least int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > mostFaultTimes {
		return 0, fmt.Errorf("found %.40q, expected a number from %d to %d", value, least, mostFaultTimes)
	}
	return n, nil
}
