/** An API server that is that of another cluster (reports-2.md 2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type KubeObject, type ResourceType } from '@tenon/api'
import { type HttpRequest, type HttpResponse, oneChunk, readText, type Transport } from '@tenon/runtime'
import { defaultSettings } from '@tenon/operator'
import type { RunningOperator } from '../world.ts'
import { callsTo, healthyCluster, instanceIds } from './healthy-cluster.test-support.ts'

const minute = 60_000

interface EventObject extends KubeObject {
  readonly reason: string
  readonly message: string
}

/** What another cluster answers: it has none of the objects of this one, and another identity. */
class OtherCluster {
  isOn = false
  readonly uid: string
  #here = ''

  constructor(uid: string) {
    this.uid = uid
  }

  /** @param here the identity of the cluster that is hidden. */
  hide(here: string): void {
    this.#here = here
    this.isOn = true
  }

  readonly path = (inner: Transport): Transport => ({
    send: async (request, signal) =>
      (this.isOn ? this.#own(request, signal) : undefined) ??
      (await this.#renamed(await inner.send(request, signal), request)),
  })

  #own({ method, path }: HttpRequest, signal: AbortSignal | undefined): HttpResponse | undefined {
    const [plain = ''] = path.split('?')
    const plural = /\/(pods|nodes|nodeclaims)(\/|$)/.exec(plain)?.[1]
    if (method !== 'GET') return undefined
    if (path.includes('sendInitialEvents')) return status(422, 'Invalid')
    if (plural === undefined) return undefined
    if (path.includes('watch=true')) return { status: 200, headers: {}, body: never(signal) }
    if (!plain.endsWith(`/${plural}`)) return status(404, 'NotFound')
    const kind = { pods: 'PodList', nodes: 'NodeList', nodeclaims: 'NodeClaimList' }[plural]
    return json(200, { kind, metadata: { resourceVersion: '1' }, items: [] })
  }

  async #renamed(response: HttpResponse, { method, path }: HttpRequest): Promise<HttpResponse> {
    if (!this.isOn || method !== 'GET' || !path.includes('/namespaces') || path.includes('watch=true'))
      return response
    const text = await readText(response.body)
    return { ...response, body: oneChunk(text.replaceAll(this.#here, this.uid)) }
  }
}

function json(code: number, body: object): HttpResponse {
  return {
    status: code,
    headers: { 'content-type': 'application/json' },
    body: oneChunk(JSON.stringify(body)),
  }
}

function status(code: number, reason: string): HttpResponse {
  return json(code, { apiVersion: 'v1', kind: 'Status', status: 'Failure', code, reason })
}

async function* never(signal: AbortSignal | undefined): AsyncGenerator<string> {
  await new Promise((_, reject) => {
    signal?.addEventListener('abort', () => {
      reject(signal.reason as Error)
    })
  })
  yield ''
}

const uidHere = (world: Awaited<ReturnType<typeof healthyCluster>>) =>
  world.cluster.server.local.get(kinds.namespace, undefined, 'kube-system')?.metadata.uid ?? ''

function told(world: Awaited<ReturnType<typeof healthyCluster>>): readonly EventObject[] {
  return world.cluster.server.local
    .list(kinds.event as ResourceType<EventObject>)
    .filter(({ reason }) => reason === 'ClusterNotRecognized')
}

for (const isFromTheStart of [false, true])
  test(`RPB-43 an API server that is another, empty cluster ${isFromTheStart ? 'from the start' : 'from one moment on'} costs no instance`, async (t) => {
    const other = new OtherCluster('0e500000-0000-4000-8000-000000000000')
    let running: RunningOperator | undefined
    const world = await healthyCluster(t, 4, { apiPath: other.path }, (operator) => {
      running = operator
    })
    const before = instanceIds(world)
    if (isFromTheStart && running !== undefined) await world.bury(running)
    other.hide(uidHere(world))
    if (isFromTheStart) await world.startOperator()
    await world.clock.advance(40 * minute)
    assert.equal(callsTo(world, 'delete-instance'), 0)
    assert.deepEqual(instanceIds(world), before)
    assert.ok(told(world).length > 0, 'somebody is told')
  })

test('RPB-43 whoever accepts the cluster has what it does not know swept', async (t) => {
  const other = new OtherCluster('0e500000-0000-4000-8000-000000000000')
  let running: RunningOperator | undefined
  const settings = { ...defaultSettings, identity: { isAccepted: true } }
  const world = await healthyCluster(t, 2, { apiPath: other.path, settings }, (operator) => {
    running = operator
  })
  if (running !== undefined) await world.bury(running)
  other.hide(uidHere(world))
  await world.startOperator()
  await world.clock.advance(40 * minute)
  assert.equal(callsTo(world, 'delete-instance'), 2)
})
