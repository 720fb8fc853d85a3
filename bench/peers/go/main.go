// Go's timers, measured as ../rust/src does it: the same arguments, loads and lines.
//
// AfterFunc, Stop and Reset are what is armed, cancelled and moved; tasks are goroutines in time.Sleep.
// There is no other kind of thread than the runtime's, so place=foreign is the same as place=home.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const workers = 2

// Random numbers drawn beforehand, and operations of a stretch.
const drawn = 4096

// load is the measure's sizes; what a measure does not use is 0.
type load struct {
	threads, others, count     int
	time, lead, spread, period time.Duration
}

func main() {
	runtime.GOMAXPROCS(workers)
	if len(os.Args) < 2 {
		fail("no measure is given")
	}
	load := parse(os.Args[2:])
	switch os.Args[1] {
	case "arm-cancel":
		armCancel(load)
	case "remote-cancel":
		remoteCancel(load)
	case "rearm":
		rearm(load)
	case "expire":
		expire(load)
	case "periodic":
		periodic(load)
	case "sleep":
		sleep(load)
	case "blocked":
		blocked(load)
	case "idle":
		time.Sleep(margin)
		windowStart()
		time.Sleep(load.time)
		windowEnd(0)
	default:
		fail("there is no measure " + os.Args[1])
	}
}

func parse(arguments []string) load {
	load := load{threads: 1}
	for _, argument := range arguments {
		key, value, _ := strings.Cut(argument, "=")
		if key == "place" {
			continue
		}
		if key == "form" {
			if value == "at" {
				absent("AfterFunc takes a duration")
			}
			continue
		}
		number, err := strconv.Atoi(value)
		if err != nil {
			fail("not understood: " + argument)
		}
		millis := time.Duration(number) * time.Millisecond
		switch key {
		case "threads":
			load.threads = number
		case "others":
			load.others = number
		case "count":
			load.count = number
		case "time_ms":
			load.time = millis
		case "lead_ms":
			load.lead = millis
		case "spread_ms":
			load.spread = millis
		case "period_ms":
			load.period = millis
		default:
			fail("not understood: " + argument)
		}
	}
	return load
}

// delays is SplitMix64, seeded with the number of the thread; ../rust/src/load.rs names the source.
type delays struct{ state uint64 }

func delaysOf(thread int) *delays { return &delays{uint64(thread) + 1} }

func (delays *delays) below(bound uint64) uint64 {
	delays.state += 0x9e3779b97f4a7c15
	mixed := (delays.state ^ (delays.state >> 30)) * 0xbf58476d1ce4e5b9
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb
	high, _ := bits.Mul64(mixed^(mixed>>31), bound)
	return high
}

// far is 60 s to an hour.
func (delays *delays) far() time.Duration {
	return time.Duration(60_000+delays.below(3_540_000)) * time.Millisecond
}

func (delays *delays) within(bound time.Duration) time.Duration {
	return time.Duration(delays.below(uint64(bound)))
}

// stretches are operations: how many in all, and how long each stretch took.
type stretches struct {
	operations int
	lasted     []time.Duration
}

func (stretches *stretches) add(operations int, lasted time.Duration) {
	stretches.operations += operations
	stretches.lasted = append(stretches.lasted, lasted)
}

// nanos is per operation of the median stretch: one in which the thread lost its CPU does not count.
func (stretches *stretches) nanos() float64 {
	slices.Sort(stretches.lasted)
	count := len(stretches.lasted)
	return float64(stretches.lasted[count/2].Nanoseconds()) * float64(count) / float64(stretches.operations)
}

// repeat calls operation for so long.
func repeat(limit time.Duration, operation func(index int)) *stretches {
	stretches := &stretches{lasted: make([]time.Duration, 0, 1<<16)}
	start := time.Now()
	for last := start; last.Sub(start) < limit; {
		for index := 0; index < drawn; index++ {
			operation(index)
		}
		now := time.Now()
		stretches.add(drawn, now.Sub(last))
		last = now
	}
	return stretches
}

func nothing() {}

func pending(count int, delays *delays) []*time.Timer {
	timers := make([]*time.Timer, count)
	for at := range timers {
		timers[at] = time.AfterFunc(delays.far(), nothing)
	}
	return timers
}

// onThreads runs work on so many goroutines at once and adds up what they return.
func onThreads(threads int, work func(thread int) float64) float64 {
	results := make(chan float64)
	for thread := 0; thread < threads; thread++ {
		go func() { results <- work(thread) }()
	}
	sum := 0.0
	for thread := 0; thread < threads; thread++ {
		sum += <-results
	}
	return sum
}

func armCancel(load load) {
	var ready, done sync.WaitGroup
	var total atomic.Int64
	ready.Add(load.threads)
	done.Add(load.threads)
	begin := make(chan struct{})
	go func() {
		ready.Wait()
		windowStart()
		close(begin)
	}()
	sum := onThreads(load.threads, func(thread int) float64 {
		delays := delaysOf(thread)
		others := pending(load.others/load.threads, delays)
		var far [drawn]time.Duration
		for at := range far {
			far[at] = delays.far()
		}
		pair := func(index int) { time.AfterFunc(far[index], nothing).Stop() }
		repeat(load.time/10, pair)
		ready.Done()
		<-begin
		measured := repeat(load.time, pair)
		total.Add(int64(measured.operations))
		done.Done()
		done.Wait()
		if thread == 0 {
			windowEnd(total.Load())
		}
		runtime.KeepAlive(others)
		return measured.nanos()
	})
	figure("ns", sum/float64(load.threads))
}

func remoteCancel(load load) {
	give, back := make(chan []*time.Timer), make(chan []*time.Timer)
	go func() {
		delays, batch := delaysOf(0), make([]*time.Timer, load.count)
		for {
			for at := range batch {
				batch[at] = time.AfterFunc(delays.far(), nothing)
			}
			give <- batch
			batch = <-back
		}
	}()
	var measured stretches
	end := time.Now().Add(load.time)
	for time.Now().Before(end) {
		batch := <-give
		start := time.Now()
		for _, timer := range batch {
			timer.Stop()
		}
		measured.add(len(batch), time.Since(start))
		back <- batch
	}
	figure("ns", measured.nanos())
}

func rearm(load load) {
	delays := delaysOf(0)
	timers := pending(load.others, delays)
	bound := uint64(len(timers))
	one := func(int) {
		which := delays.below(bound)
		timers[which].Reset(delays.far())
	}
	repeat(load.time/10, one)
	figure("ns", repeat(load.time, one).nanos())
}

func expire(load load) {
	first := time.Now().Add(load.lead)
	var expired atomic.Int64
	each := load.count / load.threads
	onThreads(load.threads, func(thread int) float64 {
		delays := delaysOf(thread)
		for armed := 0; armed < each; armed++ {
			at := first.Add(delays.within(load.spread))
			time.AfterFunc(time.Until(at), func() { expired.Add(1) })
		}
		return 0
	})
	rest := time.Until(first) - 20*time.Millisecond
	if rest < 0 {
		absent("arming took so long that the first were due")
	}
	time.Sleep(rest)
	windowStart()
	wanted := int64(each * load.threads)
	for expired.Load() < wanted {
		if time.Since(first) > load.spread+20*time.Second {
			fail(fmt.Sprintf("only %d of %d expired", expired.Load(), wanted))
		}
		time.Sleep(20 * time.Millisecond)
	}
	windowEnd(wanted)
}

// What passes before and after a window, so that neither start nor end is in it.
const margin = 200 * time.Millisecond

func microsLate(due time.Time) int64 { return time.Since(due).Microseconds() }

func collect(tasks int, results chan []int64) []int64 {
	var all []int64
	for task := 0; task < tasks; task++ {
		all = append(all, <-results...)
	}
	return all
}

func periodic(load load) {
	delays, results := delaysOf(0), make(chan []int64, load.count)
	start := time.Now().Add(margin)
	end := start.Add(load.time + 2*margin)
	for task := 0; task < load.count; task++ {
		due := start.Add(delays.within(load.period))
		go func() {
			late := make([]int64, 0, 1024)
			for ; due.Before(end); due = due.Add(load.period) {
				time.Sleep(time.Until(due))
				late = append(late, microsLate(due))
			}
			results <- late
		}()
	}
	time.Sleep(2 * margin)
	windowStart()
	time.Sleep(load.time)
	windowEnd(0)
	samples("lateness", collect(load.count, results))
}

func sleep(load load) {
	late := make([]int64, 0, load.count)
	windowStart()
	for len(late) < load.count {
		due := time.Now().Add(load.period)
		time.Sleep(load.period)
		late = append(late, microsLate(due))
	}
	windowEnd(int64(load.count))
	samples("lateness", late)
}

func blocked(load load) {
	samples("calm", naps(load))
	end := time.Now().Add(load.time)
	go func() {
		for time.Now().Before(end) {
			blocks := syscall.NsecToTimespec((100 * time.Millisecond).Nanoseconds())
			syscall.Nanosleep(&blocks, nil)
			time.Sleep(20 * time.Millisecond)
		}
	}()
	samples("blocked", naps(load))
}

func naps(load load) []int64 {
	results := make(chan []int64, load.count)
	end := time.Now().Add(load.time)
	for task := 0; task < load.count; task++ {
		go func() {
			delays, late := delaysOf(task), make([]int64, 0, 1024)
			for time.Now().Before(end) {
				delay := 10*time.Millisecond + delays.within(6*time.Millisecond)
				due := time.Now().Add(delay)
				time.Sleep(delay)
				late = append(late, microsLate(due))
			}
			results <- late
		}()
	}
	return collect(load.count, results)
}

func figure(name string, value float64) { line(map[string]any{"figure": name, "value": value}) }

func samples(name string, micros []int64) { line(map[string]any{"samples": name, "us": micros}) }

func windowStart() { line(map[string]any{"window": "start"}) }

func windowEnd(events int64) { line(map[string]any{"window": "end", "events": events}) }

// absent ends the program: there is no result.
func absent(reason string) {
	line(map[string]any{"absent": reason})
	os.Exit(0)
}

// fail ends the program: something is wrong.
func fail(reason string) {
	fmt.Fprintln(os.Stderr, "error:", reason)
	os.Exit(1)
}

func line(value any) {
	out := bufio.NewWriter(os.Stdout)
	if json.NewEncoder(out).Encode(value) != nil || out.Flush() != nil {
		os.Exit(1)
	}
}
