import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { KubeObject, VerticalPodAutoscaler } from '@tenon/api'
import { KubeError, type KubeErrorKind } from '@tenon/kube'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import { Predictions } from '../../state/pods/predictions.ts'
import { VpaPredictions } from './controller.ts'

const never = new AbortController().signal

function anAutoscaler(name: string, cpu: string, kind = 'Deployment', version = '1'): VerticalPodAutoscaler {
  return {
    apiVersion: 'autoscaling.k8s.io/v1',
    kind: 'VerticalPodAutoscaler',
    metadata: { name, namespace: 'default', resourceVersion: version },
    spec: { targetRef: { apiVersion: 'apps/v1', kind, name } },
    status: { recommendation: { containerRecommendations: [{ containerName: 'app', target: { cpu } }] } },
  }
}

/** An API server with these objects, and what becomes of reads. */
class Server {
  autoscalers: readonly VerticalPodAutoscaler[] = []
  /** By path, what a read fails with. */
  readonly failures = new Map<string, KubeError>()
  readonly reads: string[] = []
  readonly workloads = new Set<string>()
  readonly state = { predictions: new Predictions() }
  readonly clock = new VirtualClock(0, 1)
  readonly told: string[] = []
  readonly controller: VpaPredictions

  constructor() {
    const read = <T>(path: string, answer: () => T): Promise<T> => {
      this.reads.push(path)
      const failure = this.failures.get(path)
      return failure === undefined ? Promise.resolve(answer()) : Promise.reject(failure)
    }
    const client = {
      list: <T extends KubeObject>({ plural }: { readonly plural: string }) =>
        read(plural, () => [...this.autoscalers] as readonly KubeObject[] as T[]),
      get: <T extends KubeObject>(
        { plural }: { readonly plural: string },
        { name }: { readonly name: string },
      ) =>
        read(`${plural}/${name}`, () => {
          const object: KubeObject = { apiVersion: 'v1', kind: 'X', metadata: { name, uid: `uid-${name}` } }
          return this.workloads.has(name) ? (object as T) : undefined
        }),
    }
    const logger = { ...silentLogger, info: (message: string) => void this.told.push(message) }
    this.controller = new VpaPredictions(client, this.state, this.clock, logger)
  }

  fail(path: string, kind: KubeErrorKind, status: number): void {
    this.failures.set(path, new KubeError(kind, status, 'no'))
  }

  /** @returns seconds until the next look. */
  async look(): Promise<number> {
    const result = await this.controller.run(never)
    return result.kind === 'after' ? result.delayMs / 1000 : 0
  }

  get predicted(): Readonly<Record<string, number | undefined>> {
    return Object.fromEntries(
      this.state.predictions.all().map(({ name, containers }) => [name, containers[0]?.requests['cpu']]),
    )
  }

  get isKnown(): boolean {
    return !this.state.predictions.isAwaited
  }
}

describe('predictions of VerticalPodAutoscalers', () => {
  test('are read every 30 s, targets only of those that have changed', async () => {
    const server = new Server()
    server.workloads.add('web').add('api')
    server.autoscalers = [anAutoscaler('web', '1'), anAutoscaler('api', '2')]
    assert.equal(server.isKnown, false)
    assert.equal(await server.look(), 30)
    assert.deepEqual(server.predicted, { web: 1000, api: 2000 })
    assert.equal(server.isKnown, true)
    server.reads.length = 0
    server.autoscalers = [anAutoscaler('web', '1'), anAutoscaler('api', '3', 'Deployment', '2')]
    await server.look()
    assert.deepEqual(server.reads, ['verticalpodautoscalers', 'deployments/api'])
    assert.deepEqual(server.predicted, { web: 1000, api: 3000 })
    server.autoscalers = [anAutoscaler('web', '1')]
    await server.look()
    assert.deepEqual(server.predicted, { web: 1000 }, 'one that is gone predicts nothing')
  })

  test('BUF-94 a kind that is not served, or that may not be read, is no error', async () => {
    for (const [kind, status, words] of [
      ['other', 404, 0],
      ['notFound', 404, 0],
      ['forbidden', 403, 1],
    ] as const) {
      const server = new Server()
      server.workloads.add('web')
      server.fail('verticalpodautoscalers', kind, status)
      assert.equal(await server.look(), 60)
      assert.equal(server.isKnown, true)
      await server.look()
      assert.equal(server.told.length, words, 'a missing right is told once')
      server.failures.clear()
      server.autoscalers = [anAutoscaler('web', '1')]
      assert.equal(await server.look(), 30)
      assert.deepEqual(server.predicted, { web: 1000 })
      server.fail('verticalpodautoscalers', kind, status)
      await server.look()
      assert.deepEqual(server.predicted, {}, 'the kind was taken away')
    }
  })

  test('another failure to read them is one', async () => {
    const server = new Server()
    server.fail('verticalpodautoscalers', 'server', 500)
    await assert.rejects(server.look(), KubeError)
    assert.equal(server.isKnown, false)
    await server.clock.advance(60_000)
    await assert.rejects(server.look(), KubeError)
    assert.equal(server.isKnown, true, 'nothing waits longer than a minute')
  })

  test('BUF-100 a target that cannot be read for the moment is waited for, one that is missing is not', async () => {
    const server = new Server()
    server.workloads.add('web')
    server.autoscalers = [anAutoscaler('web', '1'), anAutoscaler('gone', '2')]
    server.fail('deployments/web', 'server', 503)
    assert.equal(await server.look(), 30)
    assert.deepEqual(server.predicted, {})
    assert.equal(server.isKnown, false)
    server.failures.clear()
    await server.look()
    assert.deepEqual(server.predicted, { web: 1000 })
    assert.equal(server.isKnown, true)
    server.reads.length = 0
    server.workloads.add('gone')
    await server.look()
    assert.deepEqual(server.reads, ['verticalpodautoscalers', 'deployments/gone'], 'looked for again')
    assert.deepEqual(server.predicted, { web: 1000, gone: 2000 })
  })

  test('what is known of a target stays while it cannot be read for the moment', async () => {
    const server = new Server()
    server.workloads.add('web')
    server.autoscalers = [anAutoscaler('web', '1')]
    await server.look()
    server.fail('deployments/web', 'transport', 0)
    server.autoscalers = [anAutoscaler('web', '2', 'Deployment', '2')]
    await server.look()
    assert.deepEqual(server.predicted, { web: 1000 })
    server.failures.clear()
    await server.look()
    assert.deepEqual(server.predicted, { web: 2000 })
    server.workloads.delete('web')
    server.autoscalers = [anAutoscaler('web', '2', 'Deployment', '3')]
    await server.look()
    assert.deepEqual(server.predicted, {}, 'its target is gone')
  })

  test('BUF-128 one on an unknown kind, and one that cannot be read, stand in the way of no other', async () => {
    const server = new Server()
    server.workloads.add('web')
    const broken = anAutoscaler('broken', 'much')
    server.autoscalers = [anAutoscaler('odd', '1', 'Gateway'), broken, anAutoscaler('web', '2')]
    server.fail('gateways/odd', 'other', 404)
    await server.look()
    assert.deepEqual(server.predicted, { web: 2000 })
    assert.equal(server.isKnown, true)
    assert.match(server.told.join(), /correct the amounts in its spec\.resourcePolicy/)
    await server.look()
    assert.equal(server.told.length, 1, 'told once')
    server.fail('gateways/odd', 'forbidden', 403)
    await server.look()
    assert.deepEqual(server.predicted, { web: 2000 })
  })

  test('plurals are those of the kinds there are', async () => {
    const server = new Server()
    const kinds = ['StatefulSet', 'ReplicationController', 'Proxy', 'Mesh', 'Gateway']
    server.autoscalers = kinds.map((kind, n) => anAutoscaler(`x${n}`, '1', kind))
    await server.look()
    assert.deepEqual(server.reads.slice(1).toSorted(), [
      'gateways/x4',
      'meshes/x3',
      'proxies/x2',
      'replicationcontrollers/x1',
      'statefulsets/x0',
    ])
  })
})
