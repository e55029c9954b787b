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
})
