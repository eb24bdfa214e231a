package client

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestRowsAreFoundWhereverTheEnvelopePutsThem(t *testing.T) {
	for _, body := range []string{
		`{"data":[{"id":1,"name":"a ] } \" \\"},{"id":2}],` +
			`"meta":{"page":0,"page_size":2,"count":7,"has_more":true}}`,
		`{"meta":{"has_more":true,"count":7,"page":0,"page_size":2},` +
			`"data":[{"id":1,"name":"a ] } \" \\"},{"id":2}]}`,
		"\n { \"extra\" : [1, {\"data\":[]}], \"data\" : " +
			"[ {\"id\":1,\"name\":\"a ] } \\\" \\\\\"} , {\"id\":2} ] , " +
			"\"meta\" : {\"page\":0.0,\"page_size\":2,\"count\":7,\"has_more\":true} }\n",
	} {
		p, err := openPage([]byte(body), nil)
		if err != nil || len(p.Rows) != 2 || !p.More || p.Count != 7 || p.Number != 0 || p.Size != 2 ||
			string(p.Rows[0]) != `{"id":1,"name":"a ] } \" \\"}` || string(p.Rows[1]) != `{"id":2}` {
			t.Errorf("%s: %q %+v %v", body, p.Rows, p, err)
		}
	}
	whole := `{"data":[{"id":1,"name":"a"},NaN,3],"meta":{"has_more":false}}`
	if p, err := openPage([]byte(whole), nil); err != nil || len(p.Rows) != 3 || p.Count != -1 {
		t.Errorf("%+v %v", p, err)
	}
	for i := range whole {
		if _, err := openPage([]byte(whole[:i]), nil); !errors.Is(err, errCut) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	noJSON := []string{`<html>`, `[]`, `"x"`, `{"data":[] "meta":{}}`, `{"data":[]} x`, `{"data" []}`}
	for _, body := range noJSON {
		if _, err := openPage([]byte(body), nil); !errors.Is(err, errNotJSON) {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, body := range []string{
		`{}`, `{"data":null}`, `{"data":{},"meta":{"has_more":false}}`, `{"data":[],"meta":{"has_more":"maybe"}}`,
		`{"data":[],"meta":7}`,
	} {
		if _, err := openPage([]byte(body), nil); err == nil {
			t.Errorf("%s was taken", body)
		}
	}
	many := `{"data":[1` + strings.Repeat(",1", maxRows) + `],"meta":{"has_more":false}}`
	if p, err := openPage([]byte(many), nil); !errors.Is(err, errTooMuch) || len(p.Rows) > maxRows {
		t.Errorf("%d rows: %v", len(p.Rows), err)
	}
}

// Services write numbers, booleans, names and what is empty in their stack's way.
func TestAnEnvelopeIsReadInEveryFormWithOneMeaning(t *testing.T) {
	unknown, more := Page{Number: -1, Size: -1, Count: -1}, Page{Number: -1, Size: -1, Count: -1, More: true}
	for _, test := range []struct {
		body string
		want Page
	}{
		{`{"data":[1],"meta":{"page":"3","page_size":"1000","count":"7","has_more":true}}`,
			Page{Number: 3, Size: 1000, Count: 7, More: true}},
		{`{"data":[1],"meta":{"page":3.0,"page_size":1e3,"count":"7.0","has_more":true}}`,
			Page{Number: 3, Size: 1000, Count: 7, More: true}},
		{`{"data":[1],"meta":{"page":null,"page_size":"all","count":{},"has_more":"True"}}`, more},
		{`{"data":[1],"meta":{"page":0.5,"page_size":NaN,"count":-1,"has_more":1}}`, more},
		{`{"data":[1],"meta":{"has_more":"1"}}`, more},
		{`{"data":[1],"meta":{"has_more":1.0}}`, more},
		{`{"data":[1],"meta":{"has_more":"Y"}}`, more},
		{`{"data":[1],"meta":{"has_more":0}}`, unknown},
		{`{"data":[1],"meta":{"has_more":"0"}}`, unknown},
		{`{"data":[1],"meta":{"has_more":"FALSE"}}`, unknown},
		{`{"data":[1],"meta":{"has_more":"no"}}`, unknown},
		{`{"Meta":{"HasMore":true,"PageSize":2,"Page":0,"Count":9},"Data":[1]}`,
			Page{Size: 2, Count: 9, More: true}},
		{`{"META":{"HAS_MORE":true,"PAGE-SIZE":2,"links":{"page":8}},"page":5,"DATA":[1]}`,
			Page{Number: -1, Size: 2, Count: -1, More: true}},
		{`{"meta":{"hasMore":true,"pageSize":2,"totalCount":9},"data":[1]}`,
			Page{Number: -1, Size: 2, Count: -1, More: true}},
		{`{"success":true,"error":null,"errors":[ ],"data":[1],"meta":{"has_more":true}}`, more},
		{`{"success":"true","error":false,"errors":{},"data":[1],"meta":{"has_more":true}}`, more},
		{`{"data":[2,3],"data":[1],"meta":{"has_more":true},"meta":{"has_more":false}}`, unknown},
		{`{"data":[1],"Data":null,"meta":{"has_more":true,"hasMore":false}}`, more}, // neither ends a window
		{"\ufeff" + `{"data":[1],"meta":{"has_more":true}}`, more},
		{`{"data":[1],"meta":{"count":"12345678901234567890","page":-1,"has_more":"false"}}`, unknown},
	} {
		body, want := test.body, test.want
		p, err := openPage([]byte(body), nil)
		if err != nil || len(p.Rows) != 1 || string(p.Rows[0]) != "1" || p.Number != want.Number ||
			p.Size != want.Size || p.Count != want.Count || p.More != want.More {
			t.Errorf("%s: %+v %v", body, p, err)
		}
	}
	for _, body := range []string{
		`{"data":null,"meta":{"has_more":false}}`,
		`{"meta":{"has_more":false}}`,
		`{"data":[],"meta":{"has_more":false}}`,
	} {
		if p, err := openPage([]byte(body), nil); err != nil || len(p.Rows) != 0 || p.More {
			t.Errorf("%s: %+v %v, expected an empty page", body, p, err)
		}
	}
}

// Encoders leave out what is false, and some services leave out meta on the last page.
func TestAPageThatDoesNotSayWhetherMoreFollowIsUnsureIfItHasRows(t *testing.T) {
	for body, want := range map[string]int{
		`{"data":[1]}`:                                     1,
		`{"data":[1],"meta":null}`:                         1,
		`{"data":[1],"meta":{}}`:                           1,
		`{"data":[1],"meta":{"page":3,"has_more":null}}`:   1,
		`{"data":[]}`:                                      0,
		`{"data":[],"meta":{"page":3}}`:                    0,
		`{"data":null,"meta":{"page":0,"page_size":1000}}`: 0,
		`{"meta":{"page":0}}`:                              0,
	} {
		p, err := openPage([]byte(body), nil)
		if err != nil || len(p.Rows) != want || p.More || p.Unsure != (want > 0) {
			t.Errorf("%s: %+v %v", body, p, err)
		}
	}
}

// What is no page is not taken for an empty one, and the error says what it is.
func TestAnAnswerThatIsNoPageIsNotTakenForAnEmptyOne(t *testing.T) {
	for _, test := range []struct {
		body string
		want string
	}{
		{`[{"id":1}]`, "not a JSON object: it is an array"},
		{`"x"`, "not a JSON object: it is a string"},
		{`null`, "not a JSON object: it is null"},
		{"<html>", "not a JSON object: it is HTML or XML"},
		{"{\x00\"\x00d\x00a\x00t\x00a\x00\"\x00", "UTF-16"},
		{`{}`, `"meta" is missing`},
		{`{"data":null}`, `"meta" is missing`},
		{`{"data":null,"meta":null}`, `"meta" is null`},
		{`{"meta":{}}`, `"has_more" in it is missing`},
		{`{"data":[],"meta":[]}`, `"meta" is an array`},
		{`{"data":[],"meta":{"has_more":2}}`, `"has_more" in it is a number`},
		{`{"data":[],"meta":{"has_more" true}}`, `"has_more" in it is missing`},
		{`{"data":{},"meta":{"has_more":false}}`, `"data" is an object`},
		{`{"data":"","meta":{"has_more":false}}`, `"data" is a string`},
		{`{"data":false,"meta":{"has_more":"f"}}`, `"data" is a number or a word`},
		{`{"error":"internal_error"}`, "says that the request failed"},
		{`{"error":"internal_error","data":null,"meta":{"has_more":false}}`,
			"says that the request failed"},
		{`{"data":[],"meta":{"has_more":false},"Error":{"code":7}}`, "says that the request failed"},
		{`{"data":[1],"errors":[{"message":"m"}],"meta":{"has_more":false}}`,
			"says that the request failed"},
		{`{"success":false,"data":null,"meta":{"has_more":false}}`, "says that the request failed"},
		{`{"success":0,"data":[],"meta":{"has_more":false}}`, "says that the request failed"},
		{`{"error":true,"message":"m m","data":null,"meta":{"has_more":"false"}}`,
			"says that the request failed"},
	} {
		body, want := test.body, test.want
		if p, err := openPage([]byte(body), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v %v, want %q", body, p, err, want)
		}
	}
}

func BenchmarkFindingTheRowsOfAPage(b *testing.B) {
	body := []byte(`{"data":[`)
	for i := range 1000 {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"id":%d,"first_name":"Anna","email":"anna%d@example.org","age":41,`+
			`"latitude":-19.9026,"street_address":"%d Example Avenue Suite 7","postal_code":"31110-000",`+
			`"city":"Belo Horizonte",`+
			`"created_at":"2021-03-04T05:06:07Z","updated_at":"2026-11-20T10:%02d:%02dZ"}`, i+1, i, i, i/60%60, i%60)
	}
	body = append(body, `],"meta":{"page":0,"page_size":1000,"count":1000,"has_more":false}}`...)
	var rows [][]byte
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		p, err := openPage(body, rows)
		if err != nil || len(p.Rows) != 1000 {
			b.Fatal(len(p.Rows), err)
		}
		rows = p.Rows
	}
}
