import type { Loose } from '../columns/cells.ts'
import { fill, within } from './fill.ts'

const defaults: Readonly<Record<string, Loose>> = {
  hostPath: { type: '' },
  iscsi: { iscsiInterface: 'default' },
  rbd: { pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' },
  azureDisk: { cachingMode: 'ReadWrite', fsType: 'ext4', readOnly: false, kind: 'Shared' },
  scaleIO: { storageMode: 'ThinProvisioned', fsType: 'xfs' },
}

/** Defaults of volume sources in pods and PersistentVolumes. */
export function volumeSourceDefaults(volume: Loose): Loose {
  let filled = volume
  for (const [source, own] of Object.entries(defaults)) {
    filled = within(filled, source, (value) => fill(value, own))
  }
  return filled
}
