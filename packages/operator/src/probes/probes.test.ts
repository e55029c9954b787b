import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type HttpHandler, readText } from '@tenon/runtime'
import { crdProblem, probesHandler } from './probes.ts'

/** An operator as probes see it. */
function stage() {
  const filled = Promise.withResolvers<void>()
  const seen = { waitingFor: ['nodeclaims', 'pods'] as string[], objects: [] as string[] }
  const operator = {
    get waitingFor() {
      return seen.waitingFor
    },
    blockage: () => ({ caches: seen.waitingFor, objects: seen.objects, nodePools: [], passAgesSeconds: {} }),
    synced: async (signal?: AbortSignal) => {
      const aborted = new Promise((_, reject) => {
        const end = () => {
          reject(signal?.reason as Error)
        }
        if (signal?.aborted === true) end()
        else signal?.addEventListener('abort', end)
      })
      await Promise.race([filled.promise, aborted])
    },
  }
  return {
    operator,
    seen,
    fill: () => {
      seen.waitingFor = []
      filled.resolve()
    },
  }
}

async function ask(handler: HttpHandler, path: string, signal?: AbortSignal) {
  const { status, body } = await handler({ method: 'GET', path, headers: {} }, signal)
  return { status, text: await readText(body) }
}

const served = () => Promise.resolve(undefined)
const unserved = () => Promise.resolve('no nodepools here')

test('OPS-13 OPS-94 without the definitions the process is alive and not ready, and only the check itself tells why', async () => {
  const probes = probesHandler(stage().operator, { crdProblem: unserved })
  assert.deepEqual(await ask(probes, '/healthz'), { status: 200, text: 'ok' })
  assert.deepEqual(await ask(probes, '/readyz'), {
    status: 500,
    text: [
      '[-]crd failed: reason withheld',
      '[-]manager failed: reason withheld',
      '[+]readyz ok',
      '[+]state ok',
      'healthz check failed',
      '',
    ].join('\n'),
  })
  assert.deepEqual(await ask(probes, '/readyz/crd'), {
    status: 500,
    text: 'internal server error: no nodepools here\n',
  })
  const listed = stage()
  listed.fill()
  const withoutCrd = await ask(
    probesHandler(listed.operator, { crdProblem: unserved }),
    '/readyz?exclude=crd',
  )
  assert.deepEqual(withoutCrd, { status: 200, text: 'ok' })
})

test('OPS-14 readiness waits for the caches, and ends with the request', async () => {
  const { operator, fill } = stage()
  const probes = probesHandler(operator, { crdProblem: served })
  const gone = new AbortController()
  const [given, all] = [ask(probes, '/readyz/manager', gone.signal), ask(probes, '/readyz', gone.signal)]
  gone.abort(new Error('the client has gone'))
  assert.deepEqual(await given, {
    status: 500,
    text: 'internal server error: waiting for nodeclaims, pods\n',
  })
  assert.equal((await all).status, 500)
  const patient = ask(probes, '/readyz/manager')
  fill()
  assert.deepEqual(await patient, { status: 200, text: 'ok' })
})

test('OPS-15 a listing has one line for each check and a trailer; a check that there is not is not found', async () => {
  const { operator, seen, fill } = stage()
  fill()
  const probes = probesHandler(operator, { crdProblem: served })
  const listing = '[+]crd ok\n[+]manager ok\n[+]readyz ok\n[+]state ok\nhealthz check passed\n'
  assert.deepEqual(await ask(probes, '/readyz?verbose'), { status: 200, text: listing })
  assert.deepEqual(await ask(probes, '/readyz'), { status: 200, text: 'ok' })
  assert.deepEqual(await ask(probes, '/healthz?verbose'), {
    status: 200,
    text: '[+]healthz ok\nhealthz check passed\n',
  })
  for (const path of ['/readyz/nope', '/healthz/crd', '/readyz/crd/x', '/metrics', '/'])
    assert.equal((await ask(probes, path)).status, 404, path)
  for (const path of ['/readyz/crd', '/readyz/manager', '/readyz/readyz', '/healthz/healthz', '/readyz/'])
    assert.deepEqual(await ask(probes, path), { status: 200, text: 'ok' }, path)
  seen.objects = ['node/orphan']
  const { text } = await ask(probes, '/readyz?verbose&exclude=crd&exclude=manager&exclude=nope')
  assert.equal(
    text,
    [
      '[+]crd excluded: ok',
      '[+]manager excluded: ok',
      '[+]readyz ok',
      '[+]state ok: decisions wait for node/orphan',
      'warn: some health checks cannot be excluded: no matches for "nope"',
      'healthz check passed',
      '',
    ].join('\n'),
  )
})

test('the definitions are looked for by discovery', async () => {
  const answering = (status: number, text: string) => ({
    send: () =>
      Promise.resolve({
        status,
        headers: {},
        body: (async function* () {
          yield text
        })(),
      }),
  })
  const list = (...names: readonly string[]) => JSON.stringify({ resources: names.map((name) => ({ name })) })
  assert.equal(
    await crdProblem(answering(200, list('nodeclaims', 'nodepools', 'nodepools/status'))),
    undefined,
  )
  assert.match(
    (await crdProblem(answering(200, list('nodeclaims')))) ?? '',
    /^karpenter\.sh\/v1 serves no nodepools; install the CustomResourceDefinitions/,
  )
  assert.match((await crdProblem(answering(404, 'x'))) ?? '', /serves no nodeclaims and nodepools/)
  assert.match((await crdProblem(answering(503, 'x'))) ?? '', /the server answered 503/)
  const broken = { send: () => Promise.reject(new Error('refused')) }
  assert.equal(await crdProblem(broken), 'GET /apis/karpenter.sh/v1: refused')
})

test('a listing says what the cloud is not known for yet, which makes nobody less ready', async () => {
  const { operator, fill } = stage()
  fill()
  const because = 'the management cluster has not been read: https://hub does not answer'
  const waiting = { ...operator, blockage: () => ({ ...operator.blockage(), provider: because }) }
  const { status, text } = await ask(probesHandler(waiting, { crdProblem: served }), '/readyz?verbose')
  assert.equal(status, 200)
  assert.match(
    text,
    /state ok: nothing is launched: the management cluster has not been read: https:.*not answer$/m,
  )
})
