/** The part of zxing-wasm's reader that the gate's worker uses. */
export function prepareZXingModule(options: { overrides: { locateFile(path: string): string }; fireImmediately: boolean }): Promise<unknown>;
export function readBarcodes(picture: ImageData, options: {
  formats: string[]; tryHarder: boolean; tryInvert: boolean; maxNumberOfSymbols: number;
}): Promise<{ text: string }[]>;
