/** Harbour Cloud for `tenon up` and `tenon devcluster`: its API is served over HTTP, its servers run pods. */
import { readFileSync } from 'node:fs'
import { formatResources, type ProviderSimulator, type SimulatorParts, type Taint } from '@tenon/provider'
import { allocatableOf, instanceTypeOf } from './catalogue.ts'
import type { Server } from './cloud-api.ts'
import { SimulatedCloud, sizes } from './simulated-cloud.ts'

type KubeletSpec = Parameters<SimulatorParts['nodes']['kubelets']['start']>[0]

export const simulator: ProviderSimulator = {
  cloud: ({ bootDelayMs }) => ({
    prepare: () => {},
    start: ({ runtime, nodes, api }) => {
      const running = new Map<string, { stop(): void }>()
      const instances = {
        boot: (server: Server, script: string) => {
          running.set(server.id, nodes.kubelets.start(kubeletOf(server, script, `v${api.version}`)))
        },
        end: (server: Server) => {
          running.get(server.id)?.stop()
          running.delete(server.id)
        },
      }
      const cloud = new SimulatedCloud(runtime.clock, instances, bootDelayMs)
      return {
        api: { path: '/v1', handle: (request) => cloud.send(request), announce: () => {} },
        instances: () =>
          [...cloud.servers.values()].map(({ name, size, zone }) => ({
            name,
            pricePerHour: sizes.find((each) => each.name === size)?.pricePerHour[zone],
          })),
        stop: () => {
          cloud.stop()
          for (const kubelet of running.values()) kubelet.stop()
        },
      }
    },
  }),
  settings: ({ cloudUrl = '' }) => ({
    HARBOUR_URL: cloudUrl,
    HARBOUR_TOKEN: 'any',
    HARBOUR_JOIN_TOKEN: 'any',
  }),
  demonstration: readFileSync(new URL('../manifests.yaml', import.meta.url), 'utf8'),
}

/** What the script of a server makes its kubelet register with. */
function kubeletOf(server: Server, script: string, kubeletVersion: string): KubeletSpec {
  const flag = (name: string): readonly string[] =>
    (new RegExp(`--${name}=(\\S*)`).exec(script)?.[1] ?? '').split(',').filter((each) => each !== '')
  const size = sizes.find(({ name }) => name === server.size)
  if (size === undefined) throw new Error(`there is no size ${server.size}`)
  const type = instanceTypeOf(size, () => undefined)
  return {
    nodeName: server.name,
    providerId: `harbour://${server.id}`,
    labels: Object.fromEntries(flag('node-labels').map((each) => each.split('='))),
    taints: flag('register-with-taints').map(taintOf),
    capacity: formatResources(type.capacity),
    allocatable: formatResources(allocatableOf(type)),
    addresses: [],
    kubeletVersion,
    systemUuid: server.id,
  }
}

function taintOf(text: string): Taint {
  const [, key = '', effect] = /^(.*)=:(NoExecute|NoSchedule|PreferNoSchedule)$/.exec(text) ?? []
  if (effect !== 'NoExecute' && effect !== 'NoSchedule' && effect !== 'PreferNoSchedule')
    throw new Error(`${text} is no taint`)
  return { key, effect }
}
