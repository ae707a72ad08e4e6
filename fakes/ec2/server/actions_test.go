package server

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/enilab/enilab/fakes/ec2"
)

// The list of the API's actions is what the SDK has methods for, in order, and the model's actions are among them.
func TestActionsAreTheAPIs(t *testing.T) {
	list := strings.Fields(apiActions)
	var want []string
	client := reflect.TypeFor[*sdk.Client]()
	for k := range client.NumMethod() { // in the order of their names
		m := client.Method(k)
		if m.Type.NumIn() == 4 && m.Type.In(1) == reflect.TypeFor[context.Context]() && m.Type.NumOut() == 2 {
			want = append(want, m.Name)
		}
	}
	if len(want) < 700 {
		t.Fatalf("the SDK has %d actions", len(want))
	}
	for _, name := range want {
		if !slices.Contains(list, name) {
			t.Errorf("actions.txt lacks %s", name)
		}
	}
	for _, name := range list {
		if !slices.Contains(want, name) {
			t.Errorf("actions.txt has %s, which is no action", name)
		}
	}
	if !slices.IsSorted(list) {
		t.Error("actions.txt is not sorted")
	}
	for a := ec2.AnyAction + 1; a < ec2.ActionCount; a++ {
		if !slices.Contains(list, a.String()) {
			t.Errorf("the API has no %v", a)
		}
	}
}

// An action of the API that is not modelled says so by name, also the longest one, and is kept apart in the ledger; parameters are not looked at.
func TestUnmodelledActionIsNamed(t *testing.T) {
	h, c := newDirect(t)
	for _, name := range []string{"DescribeKeyPairs", "DescribeLocalGatewayRouteTableVirtualInterfaceGroupAssociations"} {
		a, status := send(t, h, request("Action="+name+"&Version=2016-11-15&Colour=red"))
		if a.Code != "UnsupportedOperation" || status != 400 || a.Message != "The action "+name+" is not modelled." {
			t.Errorf("%s: found %s (%s) with status %d", name, a.Code, a.Message, status)
		}
	}
	rows := c.LedgerRows()
	if len(rows) != 1 || rows[0].Action != ec2.AnyAction || rows[0].Code != "UnsupportedOperation" || rows[0].Calls != 2 {
		t.Errorf("ledger: found %+v", rows)
	}
}
