import type { SchedulingDecider, Settings } from '@tenon/operator'
import type { CloudProvider } from '@tenon/provider'
import type { Transport, VirtualClock } from '@tenon/runtime'
import type { Part } from '../generate/draw.ts'

/** A bug injected at the ports of the product; its code is unchanged. */
export interface PlantedFault {
  readonly name: string
  /** The mistake that a reviewer would have overlooked. */
  readonly mistake: string
  /** The part that finds it. */
  readonly part: Part
  readonly settings?: Partial<Settings>
  readonly api?: (inner: Transport) => Transport
  readonly cloud?: (inner: Transport) => Transport
  readonly provider?: (inner: CloudProvider) => CloudProvider
  readonly decider?: (clock: VirtualClock) => SchedulingDecider
}
