import type { AutoscalerFlag, FlagGroup } from './flag.ts'
import { cloudFlags, healthFlags, kubernetesFlags, leaderFlags, loopFlags } from './flags/cluster-flags.ts'
import { logFlags, statusFlags } from './flags/process-flags.ts'
import { requestFlags, scaleDownFlags, scaleUpFlags } from './flags/scaling-flags.ts'

/**
 * Every flag of section 8 of cluster-autoscaler.md, `--dry-run`, `--allow-scale-to-zero` and `--planned-placement`.
 */
export const flagGroups: readonly FlagGroup[] = [
  cloudFlags,
  kubernetesFlags,
  leaderFlags,
  loopFlags,
  healthFlags,
  scaleUpFlags,
  scaleDownFlags,
  requestFlags,
  statusFlags,
  logFlags,
]

export const allFlags: readonly AutoscalerFlag[] = flagGroups.flatMap(({ flags }) => flags)
