package verb

var drainSubnet = &Verb{
	Name: "drain-subnet", On: onEC2,
	Params: []Param{named("leave", Count, "0", "free addresses")},
	Doc:    "strangers take the subnet's addresses",
	Source: "seeds/004",
	Strike: func(t *Target) Strike {
		c := t.Cloud
		switch n := c.Model.DrainSubnet(c.Now, c.Model.Subnets()[0].ID, t.Int("leave")); {
		case n > 0:
			return Hit("strangers take %s", Number(n, "address"))
		case n < 0:
			return Hit("strangers give %s back", Number(-n, "address"))
		}
		return Miss("strangers could neither take addresses nor give any back")
	},
	Needs: Needs{Cloud: true},
}
