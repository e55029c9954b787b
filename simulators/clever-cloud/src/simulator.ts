import type { CloudSimulator, DevCluster } from '@tenon/devcluster'
import { type CleverCloud, type CleverCloudOptions, startCleverCloud } from './clever-cloud.ts'
import { installNodeGroupKind } from './platform-crd.ts'

/** An embedded cluster at a simulated Clever Cloud. */
export type CleverCloudCluster = DevCluster<CleverCloud>

/** A simulated Clever Cloud for an embedded cluster. */
export function cleverCloudSimulator(options: CleverCloudOptions = {}): CloudSimulator<CleverCloud> {
  return {
    prepare: installNodeGroupKind,
    start: (parts) => startCleverCloud(parts, options),
  }
}
