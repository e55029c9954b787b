/** A server's kubelet, as far as it can be played without a server: it registers a Node and says that it is ready. */
import {
  formatResources,
  type KubeClient,
  kinds,
  type NewObject,
  type Node,
  rfc3339,
  type Clock,
} from '@tenon/provider'
import { instanceTypeOf } from './catalogue.ts'
import type { Server } from './cloud-api.ts'
import { sizes } from './simulated-cloud.ts'

/** Runs the script of {@link userData}: what its flags say becomes a Node. */
export async function registerNode(
  kube: Pick<KubeClient, 'create'>,
  clock: Clock,
  server: Server,
  script: string,
): Promise<void> {
  const flag = (name: string): readonly string[] =>
    (new RegExp(`--${name}=(\\S*)`).exec(script)?.[1] ?? '').split(',').filter((each) => each !== '')
  const now = rfc3339(clock.now())
  const size = sizes.find(({ name }) => name === server.size)
  if (size === undefined) throw new Error(`there is no size ${server.size}`)
  const { capacity } = instanceTypeOf(size, () => undefined)
  const amounts = formatResources(capacity)
  const node: NewObject<Node> = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: server.name,
      labels: {
        'kubernetes.io/hostname': server.name,
        ...Object.fromEntries(flag('node-labels').map((each) => each.split('='))),
      },
    },
    spec: {
      providerID: `harbour://${server.id}`,
      taints: flag('register-with-taints').map((each) => {
        const [, key = '', effect = ''] = /^(.*)=:(.*)$/.exec(each) ?? []
        return { key, effect: effect as 'NoExecute' }
      }),
    },
    status: {
      capacity: amounts,
      allocatable: amounts,
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: 'KubeletReady',
          message: 'simulated',
          lastHeartbeatTime: now,
          lastTransitionTime: now,
        },
      ],
    },
  }
  await kube.create(kinds.node, node)
}
