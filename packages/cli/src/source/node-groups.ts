/** Node groups of the Cluster Autoscaler mode, from the status ConfigMap of Tenon or Cluster Autoscaler. */
import { type ConfigMap, kinds } from '@tenon/api'
import type { GroupRow } from '@tenon/console'
import type { KubeClient } from '@tenon/kube'
import { parse } from 'yaml'

/** The default of `--status-config-map-name`. */
export const statusName = 'cluster-autoscaler-status'

export interface GroupsStatus {
  /** When it was written, as in the ConfigMap. */
  readonly at: string
  readonly groups: readonly GroupRow[]
}

/** The parts of the status that are read. Cluster Autoscaler writes no `message` and no `leftOut`. */
interface WrittenStatus {
  readonly time?: unknown
  readonly nodeGroups?: readonly {
    readonly name?: string
    readonly message?: string
    readonly health?: {
      readonly status?: string
      readonly cloudProviderTarget?: number
      readonly minSize?: number
      readonly maxSize?: number
      readonly nodeCounts?: { readonly registered?: { readonly total?: number; readonly ready?: number } }
    }
    readonly scaleUp?: { readonly status?: string; readonly backoffInfo?: { readonly errorMessage?: string } }
  }[]
  readonly leftOut?: readonly { readonly name?: string; readonly message?: string }[]
}

/** The newest status of all namespaces; undefined if no Cluster Autoscaler has written one. */
export async function readGroups(
  kube: Pick<KubeClient, 'list'>,
  signal: AbortSignal,
): Promise<GroupsStatus | undefined> {
  const fieldSelector = `metadata.name=${statusName}`
  return groupsIn(await kube.list(kinds.configMap, { fieldSelector, signal }))
}

export function groupsIn(configMaps: readonly ConfigMap[]): GroupsStatus | undefined {
  return configMaps
    .flatMap((configMap) => statusIn(configMap) ?? [])
    .toSorted((a, b) => (a.at < b.at ? 1 : -1))[0]
}

function statusIn({ data }: ConfigMap): GroupsStatus | undefined {
  let status: WrittenStatus | null
  try {
    status = parse(data?.['status'] ?? '') as WrittenStatus | null
  } catch {
    return undefined
  }
  if (typeof status !== 'object' || status === null) return undefined
  const { nodeGroups, leftOut, time = '' } = status
  return {
    at: String(time),
    groups: [
      ...(Array.isArray(nodeGroups) ? nodeGroups : []).map(groupRow),
      ...(Array.isArray(leftOut) ? leftOut : []).map(
        ({ name = '', message }): GroupRow => ({
          id: name,
          name,
          state: 'LeftOut',
          ...(message !== undefined && { message }),
        }),
      ),
    ],
  }
}

function groupRow({
  name = '',
  message,
  health,
  scaleUp,
}: NonNullable<WrittenStatus['nodeGroups']>[number]): GroupRow {
  const { registered } = health?.nodeCounts ?? {}
  const failure = scaleUp?.backoffInfo?.errorMessage
  const why = [message, failure && `left alone after a failure: ${failure}`].filter(Boolean).join('; ')
  return {
    id: name,
    name,
    ...figure('nodes', registered?.total),
    ...figure('ready', registered?.ready),
    ...figure('minSize', health?.minSize),
    ...figure('maxSize', health?.maxSize),
    ...figure('targetSize', health?.cloudProviderTarget),
    state: stateOf(health?.status, scaleUp?.status),
    ...(why !== '' && { message: why }),
  }
}

function figure<Name extends string>(name: Name, value: unknown): { readonly [Key in Name]?: number } {
  return (typeof value === 'number' ? { [name]: value } : {}) as { readonly [Key in Name]?: number }
}

function stateOf(health: string | undefined, scaleUp: string | undefined): GroupRow['state'] {
  if (health === 'Unhealthy') return 'Unhealthy'
  return scaleUp === 'Backoff' || scaleUp === 'InProgress' ? scaleUp : 'Healthy'
}
