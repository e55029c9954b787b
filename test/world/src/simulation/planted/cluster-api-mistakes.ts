/** Bugs at the ports of the Cluster API provider. */
import type { KubeObject } from '@tenon/api'
import { ownNames } from '@tenon/provider-cluster-api'
import type { Transport } from '@tenon/runtime'
import { boundTo, deploymentsIn, isMember, memberLabel } from '../cloud/hub-objects.ts'
import type { PlantedContext } from './planted-bug.ts'
import { distorted, pluralOf } from './sight.ts'

/** How long a binding is not visible. */
const staleMs = 3 * 60_000

interface DeploymentPatch {
  readonly spec?: { readonly replicas?: number }
}

const nameIn = (path: string): string => (path.split('?')[0] ?? '').split('/').at(-1) ?? ''

function without(
  record: Readonly<Record<string, string>> = {},
  ...names: readonly string[]
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)))
}

/** A decrease of replicas is one too large, as if a Machine were counted twice. */
export function decrementsTwice(inner: Transport, { world }: PlantedContext): Transport {
  return {
    async send(request, signal) {
      if (request.method !== 'PATCH' || pluralOf(request) !== 'machinedeployments')
        return await inner.send(request, signal)
      const patch = JSON.parse(String(request.body)) as DeploymentPatch
      const before =
        deploymentsIn(world).find(({ metadata }) => metadata.name === nameIn(request.path))?.spec?.replicas ??
        0
      const { replicas } = patch.spec ?? {}
      if (replicas === undefined || replicas === 0 || replicas >= before)
        return await inner.send(request, signal)
      const body = JSON.stringify({ ...patch, spec: { ...patch.spec, replicas: replicas - 1 } })
      return await inner.send({ ...request, body }, signal)
    },
  }
}

/** A Machine that was bound recently is read as it was before. */
export function seesNoFreshBinding(inner: Transport, { world }: PlantedContext): Transport {
  const boundAt = new Map<string, number>()
  const unbound = (machine: KubeObject): KubeObject => {
    const { annotations, labels, uid = '' } = machine.metadata
    if (boundTo(machine) === undefined) return machine
    const at = boundAt.get(uid) ?? world.clock.monotonic()
    boundAt.set(uid, at)
    if (world.clock.monotonic() - at > staleMs) return machine
    const { nodeClaim, nodeClaimUid } = ownNames
    return {
      ...machine,
      metadata: {
        ...machine.metadata,
        annotations: without(annotations, nodeClaim, nodeClaimUid),
        labels: without(labels, memberLabel),
      },
    }
  }
  const stale = distorted(inner, { machines: unbound })
  // The response to the binding itself is correct.
  return {
    send: async (request, signal) => await (request.method === 'GET' ? stale : inner).send(request, signal),
  }
}

/** The record of added replicas is not visible, so none is ever released. */
export function forgetsWhatItAdded(inner: Transport): Transport {
  return distorted(inner, {
    machinedeployments: (deployment) => ({
      ...deployment,
      metadata: {
        ...deployment.metadata,
        annotations: without(deployment.metadata.annotations, ownNames.asked),
      },
    }),
  })
}

/** Every MachineDeployment counts as a member, as if the selector were ignored. */
export function takesAnyDeployment(inner: Transport, { world }: PlantedContext): Transport {
  const example = () => deploymentsIn(world).find(isMember)?.metadata
  return distorted(inner, {
    machinedeployments: (deployment) => {
      if (isMember(deployment)) return deployment
      const { annotations, labels } = deployment.metadata
      return {
        ...deployment,
        metadata: {
          ...deployment.metadata,
          labels: { ...labels, [memberLabel]: '' },
          // The cheapest of all.
          annotations: {
            ...example()?.annotations,
            ...annotations,
            'cluster.x-k8s.io/machine-current-price': '0.001',
          },
        },
      }
    },
  })
}
