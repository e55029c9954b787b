/**
 * Follows a running cluster for the viewer and the page: objects with the user's rights, and data of the
 * controller (console.md 1).
 */
import { karpenterKinds } from '@tenon/api'
import { followCluster, type SourceEvent } from '@tenon/console'
import { isKubeError } from '@tenon/kube'
import { knownCatalogue } from '../../source/catalogue.ts'
import type { Io } from '../../io.ts'
import type { ClusterConnection } from '../../kubectl/connection.ts'
import { readGroups } from '../../source/node-groups.ts'
import { reachController, whyNot } from '../../source/controller.ts'
import { followController } from '../../source/followed-controller.ts'
import type { SourceFlags } from '../../kubectl/flags.ts'
import { labelSelectorOf } from '../../kubectl/selectors.ts'

interface LiveFlags extends SourceFlags {
  /** Selects the nodes to show; default: all. */
  readonly nodeSelector?: string
}

export interface LiveTarget {
  readonly connection: ClusterConnection
  readonly emit: (event: SourceEvent) => void
}

/**
 * Follows a cluster and its controller until `signal` aborts.
 * @throws KubectlError if the cluster cannot be reached.
 */
export async function followLive(
  io: Io,
  flags: LiveFlags,
  { connection, emit }: LiveTarget,
  signal: AbortSignal,
): Promise<void> {
  const { client, clock, config } = connection
  const { nodeSelector } = flags
  await client.serverVersion()
  followCluster(
    {
      transport: config.transport,
      clock,
      emit,
      ...(nodeSelector !== undefined && { nodeSelector: labelSelectorOf(nodeSelector) }),
    },
    signal,
  )
  void followGroups(connection, emit, signal)
  let isPriced = false
  void followController(
    {
      clock,
      emit,
      reach: async (until) => {
        const reached = await reachController(flags, connection, until)
        if (reached.kind === 'reached') return reached.reach
        isPriced ||= await listPrices({ ...io, interrupted: until }, flags, { connection, emit })
        return whyNot(reached)
      },
    },
    signal,
  )
}

/** A loop of the Cluster Autoscaler mode writes its status every ten seconds. */
const groupsMs = 5000

/** Polls node groups: most clusters have none, and a user may not read ConfigMaps. */
async function followGroups(
  { client, clock }: ClusterConnection,
  emit: LiveTarget['emit'],
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const { groups = [] } = (await readGroups(client, signal)) ?? {}
      emit({ kind: 'groups', groups })
    } catch (error) {
      if (isKubeError(error, 'forbidden'))
        emit({ kind: 'absent', what: 'nodegroups', why: 'the right is missing: list configmaps' })
    }
    await clock.sleep(groupsMs, signal).catch(() => undefined)
  }
}

/**
 * Uses a price list if no controller reports the catalogue.
 * @returns whether there is one.
 */
async function listPrices(io: Io, flags: SourceFlags, { connection, emit }: LiveTarget): Promise<boolean> {
  try {
    const pools = await connection.client.list(karpenterKinds.nodePool, { signal: io.interrupted })
    const { cloud, catalogues, origin } = await knownCatalogue(io, flags, connection, pools)
    const { priceUnit } = cloud
    emit({ kind: 'catalogues', catalogues, ...(priceUnit !== undefined && { currency: priceUnit }) })
    const offerings = catalogues.flatMap(({ instanceTypes = [] }) =>
      instanceTypes.flatMap((type) => type.offerings),
    )
    if (!offerings.some(({ pricePerHour }) => pricePerHour !== undefined))
      emit({ kind: 'absent', what: 'prices', why: `the instance types are ${origin}` })
    return true
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    for (const what of ['offerings', 'prices']) emit({ kind: 'absent', what, why })
    return false
  }
}
