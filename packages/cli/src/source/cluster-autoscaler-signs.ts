/** Signs of a Cluster Autoscaler at work other than its Deployment: its lease and its status (adoption.md 2). */
import { type ConfigMap, type KubeObject, kinds, type Lease, ownValue } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { type Clock, durationText } from '@tenon/runtime'
import { autoscalerIn, deploymentKind } from './autoscalers.ts'
import { statusName } from './node-groups.ts'

export const clusterAutoscalerLease = 'cluster-autoscaler'
/** It writes its status in every loop, by default every ten seconds; a loop in a large cluster takes longer. */
const freshMs = 2 * 60_000
/** Every version writes it, also those whose status is no YAML. */
const writtenAnnotation = 'cluster-autoscaler.kubernetes.io/last-updated'

/** A Cluster Autoscaler at work. */
export interface ScalerSign {
  /** Such as `lease kube-system/cluster-autoscaler is held by a`. */
  readonly what: string
  /** How to stop it. */
  readonly fix: string
}

/** Whether its holder has renewed it in time. */
export function isHeld({ spec }: Lease, nowMs: number): boolean {
  const { holderIdentity = '', renewTime = '', leaseDurationSeconds = 15 } = spec ?? {}
  return holderIdentity !== '' && nowMs - Date.parse(renewTime) <= leaseDurationSeconds * 1000
}

/** The status ConfigMaps of all namespaces. */
export async function statusConfigMaps(
  client: Pick<KubeClient, 'list'>,
  signal: AbortSignal,
): Promise<readonly ConfigMap[]> {
  return await client.list(kinds.configMap, { fieldSelector: `metadata.name=${statusName}`, signal })
}

/** Undefined for a status that is older than two minutes. */
export function statusSign(status: ConfigMap, nowMs: number): ScalerSign | undefined {
  const writtenMs = writtenAt(status)
  if (writtenMs !== undefined && nowMs - writtenMs > freshMs) return undefined
  const ageMs = writtenMs === undefined ? undefined : Math.max(0, nowMs - writtenMs)
  return statusWritten(
    status,
    ageMs === undefined
      ? 'has no time that can be read'
      : `was written ${durationText(Math.floor(ageMs / 1000) * 1000)} ago by a Cluster Autoscaler`,
  )
}

/**
 * Finds a Cluster Autoscaler at work, wherever it runs. Later looks also go by what has changed since the one before,
 * so that no clock has to be trusted.
 */
export class ClusterAutoscalerLooks {
  readonly #client: Pick<KubeClient, 'list'>
  readonly #clock: Clock
  /** Resource versions, by kind, namespace and name. */
  readonly #seen = new Map<string, string>()

  constructor(client: Pick<KubeClient, 'list'>, clock: Clock) {
    this.#client = client
    this.#clock = clock
  }

  async find(signal: AbortSignal): Promise<ScalerSign | undefined> {
    const [deployments, active] = await Promise.all([
      this.#client.list(deploymentKind, { signal }),
      this.findActive(signal),
    ])
    const running = deployments.map(autoscalerIn).find((each) => each?.kind === 'clusterAutoscaler')
    if (running === undefined) return active
    const { namespace, name } = running
    return {
      what: `Deployment ${namespace}/${name} runs a Cluster Autoscaler`,
      fix: `kubectl -n ${namespace} scale deployment ${name} --replicas=0`,
    }
  }

  /** As {@link find}, without a list of all Deployments. */
  async findActive(signal: AbortSignal): Promise<ScalerSign | undefined> {
    const [leases, statuses] = await Promise.all([
      this.#client.list(kinds.lease, { fieldSelector: `metadata.name=${clusterAutoscalerLease}`, signal }),
      statusConfigMaps(this.#client, signal),
    ])
    const nowMs = this.#clock.now()
    const changed = new Set([...leases, ...statuses].filter((object) => this.#hasChanged(object)))
    for (const lease of leases) {
      const { holderIdentity = '' } = lease.spec ?? {}
      if (holderIdentity !== '' && (changed.has(lease) || isHeld(lease, nowMs)))
        return {
          what: `lease ${nameOf(lease)} is held by the Cluster Autoscaler ${holderIdentity}`,
          fix: 'stop it where it runs, perhaps on the control plane',
        }
    }
    for (const status of statuses) {
      const sign = changed.has(status)
        ? statusWritten(status, 'is being written by a Cluster Autoscaler')
        : statusSign(status, nowMs)
      if (sign !== undefined) return sign
    }
    return undefined
  }

  /** Whether it has another version than at the look before. */
  #hasChanged(object: KubeObject): boolean {
    const { resourceVersion = '' } = object.metadata
    const key = `${object.kind} ${nameOf(object)}`
    const before = this.#seen.get(key)
    this.#seen.set(key, resourceVersion)
    return before !== undefined && before !== resourceVersion
  }
}

function statusWritten(status: ConfigMap, how: string): ScalerSign {
  const { namespace = '', name } = status.metadata
  return {
    what: `ConfigMap ${nameOf(status)} ${how}`,
    fix: `stop it where it runs, perhaps outside of the cluster; if it has ended, wait two minutes, or kubectl -n ${namespace} delete configmap ${name}`,
  }
}

/** Milliseconds; undefined if neither the writer nor, in its place, the API server has left a time that can be read. */
function writtenAt({ metadata }: ConfigMap): number | undefined {
  const [, day = '', time = '', hours = '', minutes = ''] =
    /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,9})?) ([+-]\d\d)(\d\d)\b/.exec(
      ownValue(metadata.annotations, writtenAnnotation) ?? '',
    ) ?? []
  const told = Date.parse(`${day}T${time}${hours}:${minutes}`)
  if (!Number.isNaN(told)) return told
  return (metadata.managedFields ?? [])
    .map((each) => Date.parse(each.time ?? ''))
    .filter((ms) => !Number.isNaN(ms))
    .toSorted((a, b) => b - a)[0]
}

function nameOf({ metadata: { namespace = '', name } }: KubeObject): string {
  return `${namespace}/${name}`
}
