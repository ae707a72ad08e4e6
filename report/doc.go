// Package report says what came of runs, for people and for pipelines: one page of HTML that needs nothing beside itself, and JUnit's XML.
//
//	page := &report.Page{Title: "run", Runs: report.Of(result)}
//	err := report.HTML(w, page)
//	err = report.JUnit(w, page)
//
// A Page is plain data. It goes through JSON unharmed, so that a virtual machine can hand out what it has played, and
// the process that started the machine renders it. What is in it may come from anywhere, a system under test included:
// names are hostile until they are escaped.
package report
