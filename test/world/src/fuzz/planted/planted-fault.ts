import type { SchedulingDecider, Settings } from '@tenon/operator'
import type { CloudProvider } from '@tenon/provider'
import type { Transport, VirtualClock } from '@tenon/runtime'
import type { Part } from '../generate/draw.ts'

/** A mistake made at the ports of the product; the code under test stays as it is. */
export interface PlantedFault {
  readonly name: string
  /** What a reviewer would have missed. */
  readonly mistake: string
  /** Where it shows. */
  readonly part: Part
  readonly settings?: Partial<Settings>
  readonly api?: (inner: Transport) => Transport
  readonly cloud?: (inner: Transport) => Transport
  readonly provider?: (inner: CloudProvider) => CloudProvider
  readonly decider?: (clock: VirtualClock) => SchedulingDecider
}
