package policytest

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"github.com/sharedos-dev/operator/manifest"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	File     string      `xml:"file,attr,omitempty"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the report as JUnit XML, a suite per file of cases.
func (r *Report) WriteJUnit(w io.Writer) error {
	out := junitSuites{Tests: len(r.Results), Failures: r.Failed, Time: seconds(r.Took)}
	var last *Suite
	var took time.Duration
	for i := range r.Results {
		result := &r.Results[i]
		if result.Suite != last {
			last, took = result.Suite, 0
			out.Suites = append(out.Suites, junitSuite{Name: last.Name, File: last.File})
		}
		suite := &out.Suites[len(out.Suites)-1]
		c := junitCase{
			Name: result.Case.Name, Class: result.Suite.Namespace + "." + result.Suite.Name,
			File: result.Case.File, Line: result.Case.Line, Time: seconds(result.Took),
		}
		if !result.Passed {
			suite.Failures++
			c.Failure = &junitFailure{
				Message: "expected " + result.Want + ", got " + result.Got, Type: "AuthorizationTest", Text: result.explanation(),
			}
		}
		took += result.Took
		suite.Tests++
		suite.Time = seconds(took)
		suite.Cases = append(suite.Cases, c)
	}
	return encode(w, &out)
}

// WriteFaults writes files at fault as JUnit XML, so that a pull request shows them
// where it shows failed cases.
func WriteFaults(w io.Writer, faults manifest.Faults) error {
	suite := junitSuite{Name: "manifests", Tests: len(faults), Failures: len(faults), Time: seconds(0)}
	for _, f := range faults {
		suite.Cases = append(suite.Cases, junitCase{
			Name: f.Position.String(), Class: "manifests", File: f.File, Line: f.Line, Time: seconds(0),
			Failure: &junitFailure{Message: f.Message, Type: "manifest", Text: f.Error()},
		})
	}
	return encode(w, &junitSuites{Tests: len(faults), Failures: len(faults), Time: seconds(0), Suites: []junitSuite{suite}})
}

func encode(w io.Writer, v any) error {
	data, err := xml.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode JUnit XML: %w", err)
	}
	if _, err := io.WriteString(w, xml.Header+string(data)+"\n"); err != nil {
		return fmt.Errorf("write JUnit XML: %w", err)
	}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }
