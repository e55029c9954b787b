/** A running cluster as the source of the viewer and of the page: objects with the user's rights, and what the controller tells (console.md 1). */
import { karpenterKinds } from '@tenon/api'
import { followCluster, type SourceEvent } from '@tenon/console'
import { knownCatalogue } from '../../source/catalogue.ts'
import type { Io } from '../../io.ts'
import type { ClusterConnection } from '../../kubectl/connection.ts'
import { reachController, whyNot } from '../../source/controller.ts'
import { followController } from '../../source/followed-controller.ts'
import type { SourceFlags } from '../../kubectl/flags.ts'
import { labelSelectorOf } from '../../kubectl/selectors.ts'

interface LiveFlags extends SourceFlags {
  /** Of the nodes that are looked at; all without it. */
  readonly nodeSelector?: string
}

export interface LiveTarget {
  readonly connection: ClusterConnection
  readonly tell: (event: SourceEvent) => void
}

/**
 * Begins to follow a cluster and its controller, until `signal` aborts.
 * @throws KubectlError when the cluster does not answer at all.
 */
export async function followLive(
  io: Io,
  flags: LiveFlags,
  { connection, tell }: LiveTarget,
  signal: AbortSignal,
): Promise<void> {
  const { client, clock, config } = connection
  const { nodeSelector } = flags
  await client.serverVersion()
  followCluster(
    {
      transport: config.transport,
      clock,
      tell,
      ...(nodeSelector !== undefined && { nodeSelector: labelSelectorOf(nodeSelector) }),
    },
    signal,
  )
  let isPriced = false
  void followController(
    {
      clock,
      tell,
      reach: async (until) => {
        const reached = await reachController(flags, connection, until)
        if (reached.kind === 'reached') return reached.reach
        isPriced ||= await listPrices({ ...io, interrupted: until }, flags, { connection, tell })
        return whyNot(reached)
      },
    },
    signal,
  )
}

/** Where no Tenon tells what is for sale, a list does. @returns whether one was read. */
async function listPrices(io: Io, flags: SourceFlags, { connection, tell }: LiveTarget): Promise<boolean> {
  try {
    const pools = await connection.client.list(karpenterKinds.nodePool, { signal: io.interrupted })
    const { cloud, catalogues, origin } = await knownCatalogue(io, flags, connection, pools)
    const { priceUnit } = cloud
    tell({ kind: 'catalogues', catalogues, ...(priceUnit !== undefined && { currency: priceUnit }) })
    const offerings = catalogues.flatMap(({ instanceTypes = [] }) =>
      instanceTypes.flatMap((type) => type.offerings),
    )
    if (!offerings.some(({ pricePerHour }) => pricePerHour !== undefined))
      tell({ kind: 'absent', what: 'prices', why: `the instance types are ${origin}` })
    return true
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    for (const what of ['offerings', 'prices']) tell({ kind: 'absent', what, why })
    return false
  }
}
