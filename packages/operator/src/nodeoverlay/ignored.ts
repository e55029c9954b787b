import { ConditionSet, conditionOf, karpenterKinds, type NewCondition } from '@tenon/api'
import { isUnavailable, type KubeClient } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { SingletonSpec } from '../controller.ts'
import { inParallel } from '../in-parallel.ts'
import { patchStatus } from '../patch-status.ts'
import type { Settings } from '../settings.ts'
import { nodeOverlayConditions } from '../state/conditions.ts'
import { isWhole } from '../state/readable.ts'

const periodMs = 60_000
const parallelPatches = 5

const ignored: NewCondition = {
  type: 'FieldIgnored',
  status: 'True',
  reason: 'FeatureGateOff',
  message:
    'The NodeOverlay has no effect while feature gate NodeOverlay is off; start the controller with --feature-gates NodeOverlay=true',
}

/** `nodeoverlay.ignored`: says on NodeOverlays that they have no effect, while the feature gate is off. */
export function ignoredOverlays(
  client: KubeClient,
  { featureGates }: Pick<Settings, 'featureGates'>,
  clock: Clock,
): SingletonSpec {
  return {
    name: 'nodeoverlay.ignored',
    async run(signal) {
      const isIgnored = !featureGates.nodeOverlay
      const all = await overlays(client, signal)
      const readable = all.filter((each) => isWhole(karpenterKinds.nodeOverlay.kind, each))
      const failures = await inParallel(readable, parallelPatches, async (overlay) => {
        if ((conditionOf(overlay, ignored.type) !== undefined) === isIgnored) return
        const before = ConditionSet.of(overlay, nodeOverlayConditions)
        const { conditions } = isIgnored ? before.set(ignored, clock.now()) : before.clear(ignored.type)
        await patchStatus(client, karpenterKinds.nodeOverlay, overlay, { conditions })
      })
      if (failures.length > 0) throw failures[0]
      return { kind: 'after', delayMs: periodMs }
    },
  }
}

/** None where the kind is not served or may not be read. */
async function overlays(client: KubeClient, signal: AbortSignal) {
  try {
    return await client.list(karpenterKinds.nodeOverlay, { signal })
  } catch (error) {
    if (isUnavailable(error)) return []
    throw error
  }
}
