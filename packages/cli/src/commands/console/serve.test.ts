import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { writeSnapshot } from '@tenon/ask'
import type { ConsoleView } from '@tenon/console'
import { snapshot } from '../../testing/snapshot.test-support.ts'
import { servedPage } from './browser/served-page.test-support.ts'

interface Part {
  readonly table: string
  readonly set: readonly { readonly name: string }[]
}

interface Picture {
  readonly parts: readonly Part[]
  readonly header: ConsoleView['header']
  readonly mayAct: boolean
  readonly nowMs: number
}

/** What a stream begins with. */
async function pictureOf(answer: Response): Promise<Picture> {
  let text = ''
  for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString()
    const [, last] = /^event: picture\nid: .*\ndata: (.*)\n\n/m.exec(text) ?? []
    if (last === undefined) continue
    const parts = Array.from(
      text.matchAll(/^event: part\ndata: (.*)\n\n/gm),
      ([, part = '']) => JSON.parse(part) as Part,
    )
    return { ...(JSON.parse(last) as Omit<Picture, 'parts'>), parts }
  }
  throw new Error(`the stream ends without a picture: ${text}`)
}

test('the stream begins with the whole picture, and questions are answered beside it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-served-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'cluster.jsonl')
  await writeSnapshot(file, snapshot)
  const link = await servedPage(t, { snapshot: file })
  const admitted = await fetch(link)
  const cookie = admitted.headers.get('set-cookie')?.split(';')[0] ?? ''
  const { origin } = new URL(link)
  const ask = async (path: string, init: RequestInit = {}) =>
    await fetch(new URL(path, link), { ...init, headers: { cookie, origin } })
  const picture = await pictureOf(await ask('/api/stream'))
  assert.equal(picture.mayAct, false)
  const nodes = picture.parts.filter(({ table }) => table === 'nodes').flatMap(({ set }) => set)
  assert.deepEqual(nodes.map(({ name }) => name).toSorted(), ['n1', 'strange'])
  assert.deepEqual(picture.header.price, { perHour: 0.05, perMonth: 36.5, unpriced: 1 })
  const cost = (await (await ask('/api/cost')).json()) as { readonly total: { readonly perHour: number } }
  assert.equal(cost.total.perHour, 0.05)
  const prices = (await (await ask('/api/prices')).json()) as { readonly steps: readonly object[] }
  assert.ok(prices.steps.length > 0)
  const check = async (body: string) => {
    const { problems } = (await (await ask('/api/check', { method: 'POST', body })).json()) as {
      readonly problems: readonly { readonly message: string }[]
    }
    return problems.map(({ message }) => message)
  }
  const wrong = await check('kind: NodePool')
  assert.ok(wrong.length > 0)
  assert.deepEqual(await check(`kind: NodePool # ${'long '.repeat(10_000)}`), wrong)
  assert.equal((await ask('/api/check', { method: 'POST', body: 'x'.repeat(300_000) })).status, 413)
  assert.equal((await ask('/api/nothing')).status, 404)
  assert.equal((await ask('/api/actions', { method: 'POST', body: '{}' })).status, 405)
})
