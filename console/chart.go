package console

// Sizes of the chart, in the units of its own coordinates. It is stretched to the
// width of the page.
const (
	chartHeight = 100
	barStep     = 10
	barWidth    = 8
)

// bar is one hour in the chart: calls at the bottom, Turns on top of them.
type bar struct {
	X                 int
	CallsY, CallsTall float64
	TurnsY, TurnsTall float64
	Title             string
}

// chart is refusals by hour as bars.
type chart struct {
	Width, Height, BarWidth int
	Bars                    []bar
	// Max is what the top of the chart stands for.
	Max int
	// Ticks are the labels below, from left to right.
	Ticks []string
}

// draw makes the chart. Hours without refusals have no bar.
func draw(hours []hourCount) chart {
	out := chart{Width: len(hours) * barStep, Height: chartHeight, BarWidth: barWidth, Max: 1}
	for _, h := range hours {
		out.Max = max(out.Max, h.Total())
	}
	out.Max = niceMax(out.Max)
	scale := float64(chartHeight) / float64(out.Max)
	for i, h := range hours {
		if h.Total() == 0 {
			continue
		}
		calls, turns := float64(h.Calls)*scale, float64(h.Turns)*scale
		out.Bars = append(out.Bars, bar{
			X: i*barStep + (barStep-barWidth)/2, CallsY: chartHeight - calls, CallsTall: calls,
			TurnsY: chartHeight - calls - turns, TurnsTall: turns,
			Title: h.Start.Format("2006-01-02 15:04") + " UTC: " + plural(int64(h.Turns), "Turn", "Turns") + ", " + plural(int64(h.Calls), "call", "calls"),
		})
	}
	format := "15:04"
	if len(hours) > defaultHours {
		format = "Jan 2, 15:04"
	}
	for _, i := range []int{0, len(hours) / 2, len(hours) - 1} {
		out.Ticks = append(out.Ticks, hours[i].Start.Format(format))
	}
	return out
}

// niceMax is the next even number that reads well on a scale, or 1.
func niceMax(n int) int {
	if n <= 1 {
		return 1
	}
	for unit := 1; ; unit *= 10 {
		for _, step := range []int{2, 4, 6, 8, 10, 12, 16} {
			if step*unit >= n {
				return step * unit
			}
		}
	}
}
