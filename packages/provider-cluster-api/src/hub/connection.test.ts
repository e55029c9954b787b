import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { KubeObject, ResourceType } from '@tenon/api'
import { KubeError, type ListOptions, type WatchingKubeClient } from '@tenon/kube'
import { SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { HubConnection } from './connection.ts'

/** A hub that serves some versions, or nothing at all, and whose lists arrive when they are let. */
function aHub(serves: () => readonly string[] | 'away') {
  const clock = new VirtualClock()
  const kube = {
    list: async <T extends KubeObject>(
      { version }: ResourceType<T>,
      _options?: ListOptions,
    ): Promise<T[]> => {
      const served = serves()
      if (served === 'away') throw new KubeError('transport', 0, 'connect ECONNREFUSED')
      // In plain text, as kube-apiserver says it of groups that are not its own.
      if (!served.includes(version)) throw new KubeError('other', 404, '404 page not found')
      return []
    },
    listing: () => new Promise<never>(() => undefined),
    watch: () => new Promise<never>(() => undefined),
  }
  const connection = new HubConnection({
    server: 'https://hub.example',
    kube: kube as Partial<WatchingKubeClient> as WatchingKubeClient,
    scope: {},
    group: 'cluster.x-k8s.io',
    clock,
    random: new SeededRandom(1),
    logger: silentLogger,
  })
  return { clock, connection }
}

const waitsFor = ({ state }: HubConnection) => (state.kind === 'waiting' ? state.because : 'open')

describe('the connection to the hub', () => {
  test('a hub that is away is asked again and again, and its absence is told in words', async () => {
    let isAway = true
    const { clock, connection } = aHub(() => (isAway ? 'away' : ['v1beta2']))
    const end = new AbortController()
    connection.start(end.signal)
    await clock.advance(60_000)
    assert.match(waitsFor(connection), /^https:\/\/hub\.example: connect ECONNREFUSED/)
    isAway = false
    await clock.advance(60_000)
    assert.doesNotMatch(waitsFor(connection), /ECONNREFUSED/)
    end.abort()
    await clock.advance(1000)
  })

  test('a hub without Cluster API says how that is fixed', async () => {
    const { clock, connection } = aHub(() => [])
    const end = new AbortController()
    connection.start(end.signal)
    await clock.advance(10_000)
    assert.match(
      waitsFor(connection),
      /serves no MachineDeployments of cluster\.x-k8s\.io\/v1beta2 or v1beta1: install Cluster API there, or .*CLUSTER_API_KUBECONFIG/,
    )
    end.abort()
    await clock.advance(1000)
  })

  test('RPB-36 a role in one namespace opens the hub; what it does not allow is told by name within half a minute', async () => {
    const clock = new VirtualClock()
    const forbidden = new Set(['clusters'])
    const warnings: string[] = []
    const everywhere: string[] = []
    const allow = ({ plural }: ResourceType, { namespace }: ListOptions = {}) => {
      if (namespace !== 'team-a') everywhere.push(plural)
      if (namespace !== 'team-a' || forbidden.has(plural))
        throw new KubeError('forbidden', 403, `${plural}.cluster.x-k8s.io is forbidden: cannot list`)
    }
    const kube = {
      list: async <T extends KubeObject>(type: ResourceType<T>, options?: ListOptions): Promise<T[]> => {
        allow(type, options)
        return []
      },
      listing: async (type: ResourceType, options?: ListOptions) => {
        allow(type, options)
        return { items: [], resourceVersion: '1' }
      },
      watch: () => Promise.reject(new KubeError('invalid', 400, 'no streamed lists')),
    }
    const connection = new HubConnection({
      server: 'https://hub.example',
      kube: kube as Partial<WatchingKubeClient> as WatchingKubeClient,
      scope: { namespace: 'team-a' },
      group: 'cluster.x-k8s.io',
      clock,
      random: new SeededRandom(1),
      logger: {
        ...silentLogger,
        warn: (message, fields) => void warnings.push(`${message} ${JSON.stringify(fields)}`),
      },
      reviews: {
        isAllowed: ({ resource, verb, namespace }) =>
          Promise.resolve(
            !(resource === 'machines' && verb === 'delete') &&
              (namespace === 'team-a' || resource === 'customresourcedefinitions'),
          ),
      },
    })
    const end = new AbortController()
    connection.start(end.signal)
    await clock.advance(30_000)
    assert.match(waitsFor(connection), /clusters\.cluster\.x-k8s\.io is forbidden/)
    assert.ok(
      warnings.some((text) => text.includes('"missing":["delete machines.cluster.x-k8s.io"]')),
      warnings.join(),
    )
    forbidden.clear()
    await clock.advance(120_000)
    assert.equal(waitsFor(connection), 'open')
    assert.deepEqual(everywhere, [])
    end.abort()
    await clock.advance(1000)
  })
})
