/** The page's server: its stream while pods change, and its answers. */
import { type Figure, heldTarget, part, type Stand } from './figure.ts'
import type { ServedProcess } from './served-process.ts'

const settleMs = 3000
/** Targets of the viewer that hold for the page's server too (console.md 2). */
const [shareTarget, memoryTarget] = [10, 400]

/** @returns figures of the stream, which is read for as long as the server runs. */
export async function streamed(
  server: ServedProcess,
  { churn, clock, seconds, size }: Stand,
): Promise<readonly Figure[]> {
  const startMs = clock.monotonic()
  // Loading the program is not part of the fill.
  const stream = await server.get('/api/stream')
  const events = eventsOf(stream.body as AsyncIterable<Uint8Array>)
  let picture = await events.next()
  let characters = 0
  for (; picture.done !== true; picture = await events.next()) {
    characters += picture.value.length
    if (picture.value.startsWith('event: picture')) break
  }
  const pictureMs = clock.monotonic() - startMs
  const hasAllPods = (event: string) => {
    const [, total] = /"pods":\{"total":(\d+)/.exec(event) ?? []
    return Number(total) >= size.pods
  }
  for (let event = picture; event.done !== true && !hasAllPods(event.value); ) event = await events.next()
  const fillMs = clock.monotonic() - startMs
  const filledHeldMs = await server.longestHoldMs()
  const late: number[] = []
  void (async () => {
    for (let last = clock.monotonic(); ; last = clock.monotonic()) {
      if ((await events.next()).done === true) return
      late.push(clock.monotonic() - last)
    }
  })().catch(() => undefined)
  await clock.sleep(settleMs)
  const changed = churn()
  await clock.sleep(1000)
  await server.longestHoldMs()
  late.length = 0
  const [before, cpu] = [clock.monotonic(), server.cpuMs]
  await clock.sleep(seconds * 1000)
  const corePercent = (100 * (server.cpuMs - cpu)) / (clock.monotonic() - before)
  const heldMs = await server.longestHoldMs()
  const lateMs = [...late]
  await changed
  return [
    { name: 'console picture ms', value: pictureMs },
    { name: 'console fill ms', value: fillMs },
    { name: 'console picture kB', value: characters / 1000 },
    { name: 'console held while filling ms', value: filledHeldMs, target: heldTarget },
    { name: 'console late p50 ms', value: part(lateMs, 0.5) },
    { name: 'console late p99 ms', value: part(lateMs, 0.99) },
    { name: 'console held ms', value: heldMs, target: heldTarget },
    { name: 'console core %', value: corePercent, target: shareTarget },
    { name: 'console memory MiB', value: server.peakMiB, target: memoryTarget },
  ]
}

const questions = [
  '/api/prices',
  '/api/savings',
  '/api/placement?node=kwok-default-00000',
  '/api/fields',
  '/api/cost?by=owner',
  '/api/pools',
  '/api/pending',
  '/api/explain?kind=node&name=kwok-default-00000',
]

export async function answered(server: ServedProcess, { clock }: Stand): Promise<readonly Figure[]> {
  const figures: Figure[] = []
  for (const path of questions) {
    await clock.sleep(500)
    await server.longestHoldMs()
    const startMs = clock.monotonic()
    const answer = await server.get(path)
    const text = await answer.text()
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${text}`)
    const tookMs = clock.monotonic() - startMs
    const [name = ''] = path.split('?')
    figures.push(
      { name: `${name} held ms`, value: await server.longestHoldMs(), target: heldTarget },
      { name: `${name} answer ms`, value: tookMs },
    )
  }
  return [...figures, { name: 'console memory with answers MiB', value: server.peakMiB }]
}

/** Complete events of a stream. */
async function* eventsOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  let parts: string[] = []
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    const pieces = decoder.decode(chunk, { stream: true }).split('\n\n')
    // A blank line may be split over two chunks.
    if (pieces[0]?.startsWith('\n') === true && parts.at(-1)?.endsWith('\n') === true) pieces.unshift('')
    for (const [at, piece] of pieces.entries()) {
      parts.push(piece)
      if (at === pieces.length - 1) break
      const event = parts.join('')
      parts = []
      if (event.includes('data: ')) yield event
    }
  }
}
