/** Draws the map on a canvas. */
import type { Box, Cell, MapLayout } from './layout.ts'

/** The visible part of the map: a map unit is `scale` pixels, and the corner is at `x`, `y`. */
export interface Camera {
  readonly x: number
  readonly y: number
  readonly scale: number
}

/** Cells draw their pods from this side length on, in pixels. */
export const podsFrom = 56

export interface Colors {
  readonly cell: string
  readonly fill: string
  readonly over: string
  readonly bad: string
  readonly pod: string
  readonly line: string
  readonly focus: string
}

export interface Scene {
  readonly cells: readonly Cell[]
  readonly camera: Camera
  readonly colors: Colors
  readonly chosen: string | undefined
  readonly pods: readonly Box[]
  /** Device pixels per canvas pixel. */
  readonly ratio: number
}

/** A camera that shows the whole map. */
export function fitting({ width, height }: MapLayout, screenWidth: number, screenHeight: number): Camera {
  const scale = Math.min(4, screenWidth / Math.max(width + 8, 1), screenHeight / Math.max(height + 8, 1))
  return {
    scale,
    x: (width - screenWidth / scale) / 2,
    y: Math.min((height - screenHeight / scale) / 2, -4),
  }
}

/** Zooms, and keeps the point under the pointer in place. */
export function zoomed(camera: Camera, factor: number, atX: number, atY: number): Camera {
  const scale = Math.min(40, Math.max(0.02, camera.scale * factor))
  return {
    scale,
    x: camera.x + atX / camera.scale - atX / scale,
    y: camera.y + atY / camera.scale - atY / scale,
  }
}

export function cellAt(
  cells: readonly Cell[],
  { scale, x, y }: Camera,
  atX: number,
  atY: number,
): Cell | undefined {
  const [mapX, mapY] = [x + atX / scale, y + atY / scale]
  return cells.find((cell) => {
    return mapX >= cell.x && mapX < cell.x + cell.size && mapY >= cell.y && mapY < cell.y + cell.size
  })
}

export function seen<B extends Box>(
  boxes: readonly B[],
  { scale, x, y }: Camera,
  screenWidth: number,
  screenHeight: number,
): readonly B[] {
  const [right, bottom] = [x + screenWidth / scale, y + screenHeight / scale]
  return boxes.filter((box) => {
    return box.x < right && box.x + box.size > x && box.y < bottom && box.y + box.size > y
  })
}

/** Draws rectangles one by one: in Chromium a single path of thousands takes twice as long. */
export function draw(context: CanvasRenderingContext2D, scene: Scene): void {
  const { camera, chosen, colors, pods, ratio } = scene
  const { canvas } = context
  const [screenWidth, screenHeight] = [canvas.width / ratio, canvas.height / ratio]
  context.setTransform(1, 0, 0, 1, 0, 0)
  context.clearRect(0, 0, canvas.width, canvas.height)
  const inSight = seen(scene.cells, camera, screenWidth, screenHeight)
  const present = inSight.filter(isPresent)
  // Cells are filled in map units; lines and texts are drawn in screen units.
  const scale = ratio * camera.scale
  context.setTransform(scale, 0, 0, scale, -camera.x * scale, -camera.y * scale)
  fillAll(context, colors.cell, present, whole)
  fillAll(context, colors.fill, present, ({ fill, size, x, y }) => {
    const part = Math.min(1, fill) * size
    return [x, y + size - part, size, part]
  })
  fillAll(
    context,
    colors.over,
    present.filter(({ fill }) => fill > 1),
    ({ size, x, y }) => [x, y, size, Math.max(2 / camera.scale, size * 0.12)],
  )
  fillAll(context, colors.pod, seen(pods, camera, screenWidth, screenHeight), whole)
  fillAll(
    context,
    colors.bad,
    inSight.filter(({ row }) => row.drifted),
    ({ size, x, y }) => [x + size * 0.7, y, size * 0.3, size * 0.3],
  )
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  const onScreen = (isMeant: (cell: Cell) => boolean) =>
    inSight.filter(isMeant).map(({ size, x, y }) => ({
      x: (x - camera.x) * camera.scale,
      y: (y - camera.y) * camera.scale,
      size: size * camera.scale,
    }))
  strokeAll(
    context,
    colors.line,
    [3, 3],
    onScreen((cell) => !isPresent(cell)),
  )
  strokeAll(
    context,
    colors.bad,
    [],
    onScreen(({ row }) => row.condition === 'NotReady' || row.condition === 'Unknown'),
  )
  // Leaving nodes have a cross, drifted ones a corner: shapes, not only colours.
  crossAll(
    context,
    colors.bad,
    onScreen(({ row }) => row.deleting),
  )
  const [one] = onScreen(({ id }) => id === chosen)
  if (one !== undefined) {
    context.lineWidth = 3
    context.strokeStyle = colors.focus
    context.setLineDash([])
    context.strokeRect(one.x - 2, one.y - 2, one.size + 4, one.size + 4)
  }
}

type Square = Pick<Box, 'size' | 'x' | 'y'>

function isPresent({ row }: Cell): boolean {
  return row.node !== undefined
}

function whole({ size, x, y }: Box): readonly [number, number, number, number] {
  return [x, y, size, size]
}

function fillAll<T extends Box>(
  context: CanvasRenderingContext2D,
  color: string,
  each: readonly T[],
  box: (one: T) => readonly [number, number, number, number],
): void {
  context.fillStyle = color
  for (const one of each) context.fillRect(...box(one))
}

function strokeAll(
  context: CanvasRenderingContext2D,
  color: string,
  dash: readonly number[],
  each: readonly Square[],
): void {
  if (each.length === 0) return
  context.strokeStyle = color
  context.lineWidth = 1.5
  context.setLineDash([...dash])
  context.beginPath()
  for (const { size, x, y } of each) context.rect(x + 1, y + 1, size - 2, size - 2)
  context.stroke()
}

function crossAll(context: CanvasRenderingContext2D, color: string, each: readonly Square[]): void {
  if (each.length === 0) return
  context.strokeStyle = color
  context.lineWidth = 2
  context.setLineDash([])
  context.beginPath()
  for (const { size, x, y } of each) {
    context.moveTo(x + 2, y + 2)
    context.lineTo(x + size - 2, y + size - 2)
    context.moveTo(x + size - 2, y + 2)
    context.lineTo(x + 2, y + size - 2)
  }
  context.stroke()
}
