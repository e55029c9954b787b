import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventLog } from './event-log.ts'

const never = (signal: AbortSignal) =>
  new Promise<void>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
  })

/** The next events that have an id. */
async function take(stream: AsyncGenerator<string, void, undefined>, count: number) {
  const events: { readonly event: string; readonly id: string; readonly data: unknown }[] = []
  for (let text = ''; events.length < count; ) {
    const { done, value } = await stream.next()
    if (done === true) break
    text += value
    if (!text.endsWith('\n\n')) continue
    for (const [, event = '', id = '', lines = ''] of text.matchAll(
      /event: (.*)\nid: (.*)\n((?:data: .*\n)+)\n/g,
    ))
      events.push({ event, id, data: JSON.parse(lines.replaceAll(/^data: /gm, '')) })
    text = ''
  }
  return events
}

const aPicture = () => Promise.resolve(['"picture"'])

test('CON-23 a stream that was cut goes on after its last event, without loss or repetition', async () => {
  const log = new EventLog('run')
  const over = new AbortController()
  const open = (last?: string) => log.follow(last, aPicture, never, over.signal)
  const first = open()
  const [picture] = await take(first, 1)
  assert.deepEqual(picture, { event: 'picture', id: 'run.0', data: 'picture' })
  log.add(['one'])
  assert.deepEqual(await take(first, 1), [{ event: 'changes', id: 'run.1', data: ['one'] }])
  await first.return()
  log.add(['two'])
  log.add(['three'])
  const second = open('run.1')
  assert.deepEqual(
    (await take(second, 2)).map(({ data }) => data),
    [['two'], ['three']],
  )
  over.abort()
})

test('CON-23 ids of another run, of the future, or of what is forgotten begin with the whole picture', async () => {
  const log = new EventLog('run')
  const over = new AbortController()
  for (let at = 0; at < 6000; at++) log.add([at])
  for (const last of ['other.5', 'run.7000', 'run.1', 'run.x', '']) {
    const [event] = await take(log.follow(last, aPicture, never, over.signal), 1)
    assert.equal(event?.event, 'picture', last)
    assert.equal(event.id, 'run.6000')
  }
  over.abort()
})

test('a picture of several parts has its id with the last one, and changes wait until then', async () => {
  const log = new EventLog('run')
  const over = new AbortController()
  const stream = log.follow(undefined, () => Promise.resolve(['[1]', '[2]', '[3]']), never, over.signal)
  const told = [(await stream.next()).value, (await stream.next()).value]
  log.add(['meanwhile'])
  for (let at = 0; at < 3; at++) told.push((await stream.next()).value)
  assert.deepEqual(told, [
    'retry: 1000\n\n',
    'event: part\ndata: [1]\n\n',
    'event: part\ndata: [2]\n\n',
    'event: picture\nid: run.0\ndata: [3]\n\n',
    'event: changes\nid: run.1\ndata: ["meanwhile"]\n\n',
  ])
  over.abort()
})

test('a picture has what was added while it was taken, and is not told it again', async () => {
  const log = new EventLog('run')
  const over = new AbortController()
  const stream = log.follow(
    undefined,
    () => {
      log.add(['late'])
      return aPicture()
    },
    never,
    over.signal,
  )
  assert.equal((await take(stream, 1))[0]?.id, 'run.1')
  log.add(['next'])
  assert.deepEqual((await take(stream, 1))[0]?.data, ['next'])
  over.abort()
})
