<?php
// A shop on another domain than its waiting room, in PHP. Room and shop, each in a terminal:
//   frontrow room serve --event aurora --shop-origin http://127.0.0.1:8000
//   PHP_CLI_SERVER_WORKERS=4 php -S 127.0.0.1:8000 examples/shops/php_shop.php
require __DIR__ . '/../../connectors/php/frontrow.php';

$visit = Frontrow\protect([
    'room' => (getenv('ROOM_URL') ?: 'http://127.0.0.1:8008') . '/v1/events/aurora/room',
    'event' => 'aurora',
    'shop' => getenv('SHOP_URL') ?: 'http://127.0.0.1:8000',
    'open_paths' => ['/health'],
]);
header('Content-Type: text/html; charset=utf-8');
echo $visit['person'] === '' ? 'ok' : '<h1>Welcome! Choose your seats.</h1><p>You are ' . htmlspecialchars($visit['person']) . '.</p>';
