/** GPUs as NVIDIA's DRA driver publishes them (devices.md 3.2). */
import { type Device, ownValue, type ResourceSliceTemplate } from '@tenon/api'
import type { CatalogueEntry } from './catalogue.ts'

/** The driver's name. */
const gpuDriver = 'gpu.nvidia.com'

interface Model {
  readonly productName: string
  readonly architecture: string
  readonly cudaComputeCapability: string
  /** The smallest memory that cards of the model report, slightly less than their name says. */
  readonly memory: string
}

const models: Readonly<Record<string, Model>> = {
  gpu: model('Tesla P100-PCIE-16GB', 'Pascal', '6.0.0', '16280Mi'),
  gpu2: model('Tesla V100-PCIE-16GB', 'Volta', '7.0.0', '16160Mi'),
  gpu3: model('NVIDIA A40', 'Ampere', '8.6.0', '45634Mi'),
  gpua30: model('NVIDIA A30', 'Ampere', '8.0.0', '24258Mi'),
  gpua5000: model('NVIDIA RTX A5000', 'Ampere', '8.6.0', '24256Mi'),
  gpu3080ti: model('NVIDIA GeForce RTX 3080 Ti', 'Ampere', '8.6.0', '12053Mi'),
  gpurtx6000pro: model('NVIDIA RTX PRO 6000 Blackwell Server Edition', 'Blackwell', '12.0.0', '97250Mi'),
}

function model(
  productName: string,
  architecture: string,
  cudaComputeCapability: string,
  memory: string,
): Model {
  return { productName, architecture, cudaComputeCapability, memory }
}

/**
 * The devices that nodes of a type will publish. For families with unknown cards, only what is true of every card. What
 * differs between nodes, such as the UUID or the driver version, is left out.
 */
export function gpuDevices({
  family,
  gpus,
}: Pick<CatalogueEntry, 'family' | 'gpus'>): readonly ResourceSliceTemplate[] {
  if (gpus === 0) return []
  const known = ownValue(models, family)
  const devices = Array.from(
    { length: gpus },
    (_, index): Device => ({
      name: `gpu-${index}`,
      attributes: {
        type: { string: 'gpu' },
        ...(known && {
          productName: { string: known.productName },
          architecture: { string: known.architecture },
          cudaComputeCapability: { version: known.cudaComputeCapability },
        }),
      },
      ...(known && { capacity: { memory: { value: known.memory } } }),
    }),
  )
  return [{ driver: gpuDriver, pool: 'gpus', devices }]
}
