<?php
// Runs connectors/vectors.json in this runtime, and prints what differs: `php connectors/php/vectors.php`.
declare(strict_types=1);
require __DIR__ . '/frontrow.php';

$file = json_decode(file_get_contents(__DIR__ . '/../vectors.json'), true);
$known = array_map(fn (array $told): array => Frontrow\learn(Frontrow\NOTHING, $told), $file['rooms']);
$wrong = 0;
foreach ($file['vectors'] as $v) {
    $done = Frontrow\decide($file['setups'][$v['setup']], $known[$v['room']], $v['method'], $v['target'], $v['headers'], $v['now_s'], $file['fresh']);
    $found = array_filter($done);
    ksort($found);
    ksort($v['expect']);
    if ($found !== $v['expect']) {
        printf("%s\n  found  %s\n  wanted %s\n", $v['name'], json_encode($found), json_encode($v['expect']));
        $wrong++;
    }
}
printf("%d of %d vectors\n", count($file['vectors']) - $wrong, count($file['vectors']));
exit($wrong ? 1 : 0);
