/** `/debug/pprof/`: CPU and memory profiles for `go tool pprof`. */
import { type HeapProfiler, type Profiler, Session } from 'node:inspector/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type Clock, type HttpHandler, type HttpResponse, oneChunk } from '@tenon/runtime'
import { textPage } from './pages.ts'
import { encodePprof, type Frame, type StackProfile, type StackSample } from './pprof.ts'

/** Average bytes per sample, as in Go. */
const heapIntervalBytes = 512 * 1024
const cpuIntervalMicros = 1000
const secondsLimit = 300
const unserved = new Set(['block', 'goroutine', 'mutex', 'symbol', 'threadcreate', 'trace'])

/** Starts memory sampling, and serves everything under `/debug/pprof/`. */
export async function openProfiles(clock: Clock, args: readonly string[]): Promise<HttpHandler> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: cpuIntervalMicros })
  await session.post('HeapProfiler.enable')
  await session.post('HeapProfiler.startSampling', { samplingInterval: heapIntervalBytes })
  let isProfiling = false
  return async (request, signal) => {
    const url = new URL(request.path, 'http://localhost')
    const name = url.pathname.replace(/^\/debug\/pprof\/?/, '')
    if (name === '') return textPage(200, 'cmdline\nheap\nallocs\nprofile?seconds=N\n')
    if (name === 'cmdline') return textPage(200, args.join('\0'))
    if (name === 'heap' || name === 'allocs') {
      const { profile } = await session.post('HeapProfiler.getSamplingProfile')
      return await pprofPage(heapProfile(profile, clock.now()))
    }
    if (name === 'profile') {
      const seconds = Number(url.searchParams.get('seconds') ?? 30)
      if (!(seconds > 0 && seconds <= secondsLimit))
        return textPage(400, `seconds: give a number up to ${secondsLimit}\n`)
      if (isProfiling) return textPage(500, 'another profile is being taken\n')
      isProfiling = true
      try {
        await session.post('Profiler.start')
        await clock.sleep(seconds * 1000, signal).catch(() => undefined)
        const { profile } = await session.post('Profiler.stop')
        return await pprofPage(cpuProfile(profile, clock.now()))
      } finally {
        isProfiling = false
      }
    }
    if (unserved.has(name)) return textPage(501, `there is no profile ${name} of this runtime\n`)
    return textPage(404, 'not found\n')
  }
}

async function pprofPage(profile: StackProfile): Promise<HttpResponse> {
  const bytes = await promisify(gzip)(encodePprof(profile))
  return { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: oneChunk(bytes) }
}

/** Live objects by allocation stack. */
function heapProfile({ head }: HeapProfiler.SamplingHeapProfile, timeMs: number): StackProfile {
  const samples: StackSample[] = []
  const visit = (node: HeapProfiler.SamplingHeapProfileNode, outer: readonly Frame[]) => {
    const stack = [node.callFrame, ...outer]
    if (node.selfSize > 0) samples.push({ stack, values: [node.selfSize] })
    for (const child of node.children) visit(child, stack)
  }
  visit(head, [])
  return { types: [{ type: 'inuse_space', unit: 'bytes' }], samples, timeMs, durationMs: 0 }
}

/** Samples and time per stack, without idle time. */
function cpuProfile(
  { nodes, samples = [], timeDeltas = [], startTime, endTime }: Profiler.Profile,
  nowMs: number,
): StackProfile {
  const parents = new Map<number, number>()
  const byId = new Map(nodes.map((node) => [node.id, node]))
  for (const { id, children = [] } of nodes) for (const child of children) parents.set(child, id)
  const spent = new Map<number, { ticks: number; micros: number }>()
  for (const [at, id] of samples.entries()) {
    if (byId.get(id)?.callFrame.functionName === '(idle)') continue
    const sum = spent.get(id) ?? { ticks: 0, micros: 0 }
    // A delta is the time since the previous sample.
    spent.set(id, { ticks: sum.ticks + 1, micros: sum.micros + (timeDeltas[at] ?? 0) })
  }
  const stackOf = (leaf: number) => {
    const stack: Frame[] = []
    for (let id: number | undefined = leaf; id !== undefined; id = parents.get(id)) {
      const frame = byId.get(id)?.callFrame
      if (frame !== undefined) stack.push(frame)
    }
    return stack
  }
  return {
    types: [
      { type: 'samples', unit: 'count' },
      { type: 'cpu', unit: 'nanoseconds' },
    ],
    samples: Array.from(spent, ([id, { ticks, micros }]) => ({
      stack: stackOf(id),
      values: [ticks, micros * 1000],
    })),
    timeMs: nowMs,
    durationMs: (endTime - startTime) / 1000,
  }
}
